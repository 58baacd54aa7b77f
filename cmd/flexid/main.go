package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; tests call it with streams of their own.
func run(args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	// After the first signal the program drains. A second one must still end it at once, so the handler is taken away and
	// the system's own applies again.
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	p := &program{env: env, in: stdin, out: stdout, err: stderr}
	return p.run(ctx, args)
}
