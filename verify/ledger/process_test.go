package ledger

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/testdata/testenv"
)

// The test binary is also the server process that tests kill: it serves the directory in this variable until its
// standard input closes.
const (
	serveDir  = "FLEXID_TEST_SERVE_DIR"
	servePort = "FLEXID_TEST_SERVE_PORT"
	serveFast = "FLEXID_TEST_SERVE_FAST" // do not wait for the disk
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		os.Exit(serve(dir))
	}
	testenv.InMemory()
	testenv.Parallel(8)
	os.Exit(m.Run())
}

func serve(dir string) int {
	port, _ := strconv.Atoi(os.Getenv(servePort))
	srv, err := server.NewServer(&server.Options{
		ServerName: "ledger-test", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir,
		SyncAlways: os.Getenv(serveFast) == "",
		NoSigs:     true, NoLog: true, JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 64 << 20,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv.Start()
	if !srv.ReadyForConnections(20 * time.Second) {
		return 1
	}
	fmt.Println("url", srv.ClientURL(), os.Getpid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// process is a server in a process of its own, always on the same port.
type process struct {
	t      testing.TB
	dir    string
	under  []string // a program that runs it, with arguments
	port   string
	url    string
	cmd    *exec.Cmd
	server *os.Process // cmd, or what under runs
	alive  io.Closer
}

func newProcess(t testing.TB, dir string) *process {
	t.Helper()
	p := &process{t: t, dir: dir, port: "-1"}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	args := append(slices.Clone(p.under), os.Args[0])
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), serveDir+"="+p.dir, servePort+"="+p.port)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.alive = in
	line, err := bufio.NewReader(out).ReadString('\n')
	var url string
	var pid int
	if n, _ := fmt.Sscanf(line, "url %s %d", &url, &pid); n != 2 {
		p.t.Fatalf("server process said %q: %v", line, err)
	}
	if p.server, err = os.FindProcess(pid); err != nil {
		p.t.Fatal(err)
	}
	p.url, p.port = url, url[strings.LastIndexByte(url, ':')+1:]
}

// kill is kill -9, and waits until the process is gone. A program that runs the server ends with it.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.server.Kill()
	_ = p.cmd.Wait()
	_ = p.alive.Close()
	p.cmd = nil
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.server.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) connect() jetstream.JetStream {
	p.t.Helper()
	nc, err := nats.Connect(p.url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		p.t.Fatal(err)
	}
	return js
}
