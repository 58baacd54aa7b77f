package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"flexid/cmd/internal/api"

	"github.com/spf13/cobra"
)

// build is what the Go tool wrote into the binary. A build outside a repository has no revision.
func build() api.Build {
	b := api.Build{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

func (p *program) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "this binary", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			b := build()
			return p.object(b, func(w io.Writer) { fmt.Fprintln(w, "flexid", b.Version, b.Revision, b.Go) })
		},
	}
}
