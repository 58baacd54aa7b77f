package api

import (
	"context"
	"net/http"
	"net/http/pprof"
)

// profiles serves Go's profiles of this process on a mux of its own: the one of net/http holds what any package registers. A
// profile of some length moves the server's write deadline by that length itself (net/http/pprof).
func (s *Server) profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)

	// A stop ends a profile in hand where it stands: waited for, it would take the time that the rest of the stop needs, and
	// then be cut off as an error.
	stopping, stop := context.WithCancel(context.Background())
	s.http.RegisterOnShutdown(stop)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}
