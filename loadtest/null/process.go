package null

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// Serve runs a null server on l that plays a recording. It returns at the end of in.
func Serve(l net.Listener, r *Recording, in io.Reader, options ...grpc.ServerOption) error {
	s := New(r.Opening, options...)
	served := make(chan error, 1)
	go func() { served <- s.GRPC().Serve(l) }()
	err := s.play(r, in)
	s.GRPC().Stop()
	return errors.Join(err, <-served)
}

// play makes changes: each line of in asks for one, "endpoint 7" or "route 8".
func (s *Server) play(r *Recording, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var kind string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &kind, &n); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		switch kind {
		case "endpoint":
			s.Broadcast(r.endpoint(n))
		case "route":
			s.Broadcast(r.route(n))
		default:
			return fmt.Errorf("%q: want endpoint or route", lines.Text())
		}
	}
	return lines.Err()
}

// Process is a null server in a process of its own. Scenarios edit it: a change is a line on its standard input.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	Address string
}

// Spawn runs this program with args as a null server. The child must print the address on which it listens, and call
// Serve.
func Spawn(r *Recording, file string, args ...string) (*Process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	p.Address = strings.TrimSpace(line)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the null server: %w", err), p.Close())
	}
	return p, nil
}

// PID returns its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Close ends it.
func (p *Process) Close() error {
	p.in.Close()
	return p.cmd.Wait()
}

// Endpoint makes change n. The service does not matter here.
func (p *Process) Endpoint(_, n int) (time.Time, error) { return p.tell("endpoint", n) }

// Route makes change n.
func (p *Process) Route(n int) (time.Time, error) { return p.tell("route", n) }

// Lanes returns how many services can be changed.
func (p *Process) Lanes() int { return 1 }

// Restore does nothing, because the server has no state.
func (p *Process) Restore() error { return nil }

func (p *Process) tell(what string, n int) (time.Time, error) {
	at := time.Now()
	_, err := fmt.Fprintln(p.in, what, n)
	return at, err
}
