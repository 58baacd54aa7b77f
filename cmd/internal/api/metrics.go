package api

import (
	"net/http"
	"sync"
	"time"

	"flexid/cmd/internal/quota"
	"flexid/flexi"
	"flexid/verify"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Metrics counts what the engine and the ERP client report. It is their observer; all methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	wire     *prometheus.CounterVec
	entered  *prometheus.CounterVec
	looked   *prometheus.CounterVec
	took     prometheus.Histogram
	log      zerolog.Logger

	mu     sync.Mutex
	totals map[string]*totals
}

// totals are kept beside the counters, since a counter of the library cannot be read back for the quotient.
type totals struct{ calls, wire float64 }

// Build names this binary.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// NewMetrics registers flexid's metrics, and Go's and the process's own, in reg; log gets the operator's lines.
func NewMetrics(reg *prometheus.Registry, b Build, log zerolog.Logger) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry: reg, log: log, totals: map[string]*totals{},
		calls:   counter("flexid_calls_total", "Logical calls to the ERP.", "kind"),
		wire:    counter("flexid_wire_requests_total", "Requests on the wire to the ERP.", "kind", "outcome"),
		entered: counter("flexid_documents_total", "Documents that entered a state.", "state"),
		looked:  counter("flexid_lookups_total", "Look-ups by verdict.", "verdict"),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flexid_write_duration_seconds", Help: "One write, first byte to outcome.",
			Buckets:                     []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 200},
			NativeHistogramBucketFactor: 1.1,
		}),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "flexid_build_info", Help: "1, with this binary's version."},
		[]string{"version", "revision", "goversion"})
	info.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	reg.MustRegister(m.calls, m.wire, m.entered, m.looked, m.took, info, amplification{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the registry in the text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, Timeout: 10 * time.Second})
}

// Watch adds the gauges that are read from the engine when they are asked for.
func (m *Metrics) Watch(r Reporter, now func() time.Time) error {
	return m.registry.Register(gauges{r: r, now: now})
}

// WatchQuota adds the daily budget of requests; nil = there is none.
func (m *Metrics) WatchQuota(status func() *quota.Status) error {
	return m.registry.Register(budget(status))
}

func (m *Metrics) of(kind string) *totals {
	t := m.totals[kind]
	if t == nil {
		t = &totals{}
		m.totals[kind] = t
	}
	return t
}

// Call counts one logical call.
func (m *Metrics) Call(kind string) {
	m.calls.WithLabelValues(kind).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(kind).calls++
}

// Request counts one request on the wire; it is flexi's Observe.
func (m *Metrics) Request(r flexi.Request) {
	m.wire.WithLabelValues(r.Kind, r.Outcome).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(r.Kind).wire++
}

// Entered counts a document that entered a state.
func (m *Metrics) Entered(state string) { m.entered.WithLabelValues(state).Inc() }

// Looked counts a look-up that ended.
func (m *Metrics) Looked(verdict string) { m.looked.WithLabelValues(verdict).Inc() }

// WriteTook records how long one write was under way.
func (m *Metrics) WriteTook(seconds float64) { m.took.Observe(seconds) }

// Log writes a line for the operator: a warning for what stands in the way, information for what is in order again.
func (m *Metrics) Log(event string, fields ...[2]string) {
	level := zerolog.WarnLevel
	if event == "writes go on" || event == "writes released" {
		level = zerolog.InfoLevel
	}
	e := m.log.WithLevel(level)
	for _, f := range fields {
		e = e.Str(f[0], f[1])
	}
	e.Msg(event)
}

var _ verify.Observer = (*Metrics)(nil)

// amplification is wire requests per logical call since start, by kind.
type amplification struct{ m *Metrics }

func (a amplification) desc() *prometheus.Desc {
	return prometheus.NewDesc("flexid_amplification", "Wire requests per logical call since start.", []string{"kind"}, nil)
}

func (a amplification) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc() }

func (a amplification) Collect(ch chan<- prometheus.Metric) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	for kind, t := range a.m.totals {
		if t.calls > 0 {
			ch <- prometheus.MustNewConstMetric(a.desc(), prometheus.GaugeValue, t.wire/t.calls, kind)
		}
	}
}

// gauges are read from the engine at each scrape: a gauge that is counted up and down drifts after a crash.
type gauges struct {
	r   Reporter
	now func() time.Time
}

func (gauges) documents() *prometheus.Desc {
	return prometheus.NewDesc("flexid_documents", "Documents by state and reason.", []string{"state", "reason"}, nil)
}

func (gauges) maybe() *prometheus.Desc {
	return prometheus.NewDesc("flexid_maybe_documents", "Documents whose outcome is not known, by reason.", []string{"reason"}, nil)
}

func (gauges) oldest() *prometheus.Desc {
	return prometheus.NewDesc("flexid_maybe_oldest_seconds", "Age of the oldest document whose outcome is not known, 0 = none.", nil, nil)
}

func (gauges) tokens() *prometheus.Desc {
	return prometheus.NewDesc("flexid_retry_budget_tokens", "Tokens left for sending again, by bucket: reads, refusals, maybes.", []string{"bucket"}, nil)
}

func (gauges) stopped() *prometheus.Desc {
	return prometheus.NewDesc("flexid_writes_stopped", "1 for each reason for which writes are stopped; evidence is empty for all.",
		[]string{"evidence", "reason"}, nil)
}

func (gauges) inFlight() *prometheus.Desc {
	return prometheus.NewDesc("flexid_writes_in_flight", "Write requests under way.", nil, nil)
}

func (gauges) limit() *prometheus.Desc {
	return prometheus.NewDesc("flexid_writes_limit", "Most write requests at once, as Flexi takes them now.", nil, nil)
}

func (gauges) pack() *prometheus.Desc {
	return prometheus.NewDesc("flexid_pack_limit", "Most documents in one write request, as Flexi takes them now.", nil, nil)
}

func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.documents(), g.maybe(), g.oldest(), g.tokens(), g.stopped(), g.inFlight(), g.limit(), g.pack()} {
		ch <- d
	}
}

func (g gauges) Collect(ch chan<- prometheus.Metric) {
	st := g.r.Status()
	byReason := map[[2]string]int{} // causes are too many for a label
	for _, s := range st.Standings {
		byReason[[2]string{string(s.State), string(s.Reason)}] += s.Documents
	}
	for at, n := range byReason {
		ch <- prometheus.MustNewConstMetric(g.documents(), prometheus.GaugeValue, float64(n), at[0], at[1])
	}
	for reason, n := range st.MaybeBy {
		ch <- prometheus.MustNewConstMetric(g.maybe(), prometheus.GaugeValue, float64(n), reason)
	}
	age := 0.0
	if !st.Oldest.IsZero() {
		age = max(0, g.now().Sub(st.Oldest).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(g.oldest(), prometheus.GaugeValue, age)
	for bucket, n := range st.Tokens {
		ch <- prometheus.MustNewConstMetric(g.tokens(), prometheus.GaugeValue, float64(n), bucket)
	}
	for _, stop := range st.Stops {
		if !stop.Open {
			ch <- prometheus.MustNewConstMetric(g.stopped(), prometheus.GaugeValue, 1, stop.Evidence, stop.Reason)
		}
	}
	ch <- prometheus.MustNewConstMetric(g.inFlight(), prometheus.GaugeValue, float64(st.InFlight))
	ch <- prometheus.MustNewConstMetric(g.limit(), prometheus.GaugeValue, float64(st.Limit))
	ch <- prometheus.MustNewConstMetric(g.pack(), prometheus.GaugeValue, float64(st.Pack))
}

// budget is the daily budget of requests. used falls at the reset, which a counter must not.
type budget func() *quota.Status

func (budget) desc() *prometheus.Desc {
	return prometheus.NewDesc("flexid_quota_requests",
		"Requests of the licence's daily budget: limit, used, and reserve (the last of them, for look-ups only).", []string{"state"}, nil)
}

func (b budget) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc() }

func (b budget) Collect(ch chan<- prometheus.Metric) {
	st := b()
	if st == nil {
		return
	}
	for state, n := range map[string]int{"limit": st.Limit, "used": st.Used, "reserve": st.Reserve} {
		ch <- prometheus.MustNewConstMetric(b.desc(), prometheus.GaugeValue, float64(n), state)
	}
}
