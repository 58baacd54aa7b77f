package sidebyside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"
)

// dialer connects to the server in memory.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// call posts body to url and returns nil when the layer says that it succeeded.
type call func(ctx context.Context, url string, body []byte) error

// peer is a retry layer at its defaults.
type peer struct {
	name   string
	fenced bool // its documents carry an external id and "@update":"fail"
	over   func(client *http.Client) call
}

func peers() []peer {
	return []peer{
		{name: "net/http alone", over: plain},
		{name: "go-retryablehttp 0.7.8", over: retryable},
		{name: "go-retryablehttp, fenced body", fenced: true, over: retryable},
		{name: "failsafe-go 0.9.8", over: failsafe},
		{name: "aws-sdk-go-v2 1.48.0 retryer", over: amazon},
		{name: "azcore 1.24.0", over: azure},
		{name: "backoff 5.0.3 + any error", over: cenkalti},
	}
}

// transport is what stands under every layer: net/http's own, with a login.
func transport(dial dialer) (client *http.Client, end func()) {
	t := &http.Transport{DialContext: dial}
	return &http.Client{Transport: login{t}}, t.CloseIdleConnections
}

type login struct{ next http.RoundTripper }

func (l login) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth("flexid", "secret")
	r.Header.Set("Content-Type", "application/json")
	return l.next.RoundTrip(r)
}

// done reads the answer to its end and makes anything but a success an error.
func done(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if resp.StatusCode >= 300 {
		err = errors.Join(err, fmt.Errorf("status %d", resp.StatusCode))
	}
	return err
}

func post(ctx context.Context, url string, body []byte) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
}

func plain(client *http.Client) call {
	return func(ctx context.Context, url string, body []byte) error {
		req, err := post(ctx, url, body)
		if err != nil {
			return err
		}
		return done(client.Do(req)) //nolint:bodyclose // done closes it
	}
}

func retryable(client *http.Client) call {
	c := retryablehttp.NewClient()
	c.HTTPClient.Transport = client.Transport
	c.Logger = nil
	return func(ctx context.Context, url string, body []byte) error {
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, url, body)
		if err != nil {
			return err
		}
		return done(c.Do(req)) //nolint:bodyclose // done closes it
	}
}

func failsafe(client *http.Client) call {
	return plain(&http.Client{
		Transport: failsafehttp.NewRoundTripper(client.Transport, failsafehttp.NewRetryPolicyBuilder().Build()),
	})
}

func azure(client *http.Client) call {
	p := azruntime.NewPipeline("sidebyside", "v1", azruntime.PipelineOptions{}, &policy.ClientOptions{Transport: client})
	return func(ctx context.Context, url string, body []byte) error {
		req, err := azruntime.NewRequest(ctx, http.MethodPost, url)
		if err != nil {
			return err
		}
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(body)), "application/json"); err != nil {
			return err
		}
		return done(p.Do(req)) //nolint:bodyclose // done closes it
	}
}

// cenkalti leaves it to the caller what is an error; here everything but a success is.
func cenkalti(client *http.Client) call {
	once := plain(client)
	return func(ctx context.Context, url string, body []byte) error {
		_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, once(ctx, url, body) })
		return err
	}
}

// amazon is the SDK's attempt middleware with its standard retryer around one operation, as every service client has it.
func amazon(client *http.Client) call {
	retryer := retry.NewStandard()
	return func(ctx context.Context, url string, body []byte) error {
		stack := middleware.NewStack("sidebyside", smithyhttp.NewStackRequest)
		err := errors.Join(
			stack.Serialize.Add(serialize(url, body), middleware.After),
			stack.Finalize.Add(retry.NewAttemptMiddleware(retryer, smithyhttp.RequestCloner), middleware.After),
			stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("status", deserialize), middleware.After),
		)
		if err != nil {
			return err
		}
		_, _, err = middleware.DecorateHandler(smithyhttp.NewClientHandlerWithOptions(client), stack).Handle(ctx, nil)
		return err
	}
}

func serialize(url string, body []byte) middleware.SerializeMiddleware {
	return middleware.SerializeMiddlewareFunc("request", func(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (
		middleware.SerializeOutput, middleware.Metadata, error,
	) {
		req, ok := in.Request.(*smithyhttp.Request)
		if !ok {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("request is a %T", in.Request)
		}
		var err error
		if req.URL, err = req.URL.Parse(url); err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		req.Method = http.MethodPost
		req.ContentLength = int64(len(body))
		if req, err = req.SetStream(bytes.NewReader(body)); err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		in.Request = req
		return next.HandleSerialize(ctx, in)
	})
}

func deserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, metadata, err
	}
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok {
		return out, metadata, fmt.Errorf("response is a %T", out.RawResponse)
	}
	if err := done(resp.Response, nil); err != nil {
		return out, metadata, &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: resp, Err: err}}
	}
	return out, metadata, nil
}
