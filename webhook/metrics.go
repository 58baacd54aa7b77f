package webhook

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts deliveries. The label source is "" for a path that names none: what strangers type must not become a
// label.
type metrics struct {
	requests, rejected, duplicates, clashes, failures *prometheus.CounterVec
	took                                              *prometheus.HistogramVec
	stored                                            prometheus.Histogram
	last                                              *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		requests:   counter("flexid_webhook_requests_total", "Deliveries by source and status.", "source", "code"),
		rejected:   counter("flexid_webhook_rejected_total", "Deliveries that were refused, by reason.", "source", "reason"),
		duplicates: counter("flexid_webhook_duplicates_total", "Deliveries that were in the inbox already.", "source"),
		clashes:    counter("flexid_webhook_conflicts_total", "Deliveries whose id came before with other content.", "source"),
		failures:   counter("flexid_intake_publish_failures_total", "Deliveries that could not be stored.", "reason"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "flexid_webhook_request_duration_seconds", Help: "From the head of a request to its answer, without ?wait.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"source"}),
		stored: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flexid_intake_publish_duration_seconds", Help: "Storing one delivery durably.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "flexid_source_last_event_timestamp_seconds", Help: "When a source last delivered something.",
		}, []string{"source"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.rejected, m.duplicates, m.clashes, m.failures, m.took, m.stored, m.last} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) answered(source string, status int, took time.Duration) {
	m.requests.WithLabelValues(source, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(source).Observe(took.Seconds())
}
