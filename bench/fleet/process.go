package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// childEnv is set in the process of a Remote.
const childEnv = "PILOTD_BENCH_FLEET"

// Plan is what clients a Remote has. All have the node Node but for its id, in which %d becomes the number of the client.
type Plan struct {
	Network, Address string
	Clients          int
	Delta            bool
	Node             json.RawMessage // protojson
	Subscriptions    []Subscription
}

// Remote is a Fleet in a process of its own, so that the CPU time of this process is the server's alone.
type Remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Spawn starts a Fleet in a process of its own: this program again, whose main function must call Child first.
func Spawn(p Plan) (*Remote, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	r := &Remote{cmd: exec.Command(os.Args[0])}
	r.cmd.Env = append(os.Environ(), childEnv+"="+string(b))
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(out)
	return r, r.cmd.Start()
}

// Await returns when the clients have got n responses in all since Spawn, or one has ended.
func (r *Remote) Await(n int) error {
	if _, err := fmt.Fprintln(r.in, n); err != nil {
		return err
	}
	if !r.out.Scan() {
		return errors.New("the fleet's process has ended")
	}
	if t := r.out.Text(); t != "" {
		return errors.New(t)
	}
	return nil
}

// Close ends the process.
func (r *Remote) Close() error {
	r.in.Close()
	return r.cmd.Wait()
}

// Child runs the clients and ends the process, if this is the process of a Remote; else it does nothing.
func Child() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	if err := child([]byte(text)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(text []byte) error {
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	var node corev3.Node
	if err := protojson.Unmarshal(p.Node, &node); err != nil {
		return err
	}
	pattern := node.Id
	f, err := Start(Options{Clients: p.Clients, Delta: p.Delta, Subscriptions: p.Subscriptions,
		Dial: func() (net.Conn, error) { return net.Dial(p.Network, p.Address) },
		Node: func(i int) *corev3.Node {
			node.Id = fmt.Sprintf(pattern, i)
			return &node
		}})
	if err != nil {
		return err
	}
	defer f.Close()
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var n int
		if _, err := fmt.Sscan(commands.Text(), &n); err != nil {
			return err
		}
		answer := ""
		if err := f.Await(context.Background(), n); err != nil {
			answer = err.Error()
		}
		fmt.Println(answer)
	}
	return nil
}
