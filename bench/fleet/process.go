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
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// childEnv is set in the process of a Remote.
const childEnv = "PILOTD_BENCH_FLEET"

// Plan describes the clients of a Remote.
type Plan struct {
	Network, Address string
	Clients          int
	// Pace, unless it is 0, makes the clients hostile, each acting once in that time: see Hostile. Await then counts
	// acts, and the fields below are not used.
	Pace time.Duration
	// Busy, unless it is 0, makes the process keep that many processors busy instead of running clients: see type Busy.
	// No other field is used then.
	Busy  float64
	Delta bool
	// Node is the node of all clients, as protojson; %d in its id becomes the number of the client.
	Node json.RawMessage `json:",omitempty"`
	// Nodes, if there are any, are encoded Nodes that are merged with Node, one for each client.
	Nodes         [][]byte
	Subscriptions []Subscription
}

// Remote is a Fleet in a process of its own, so that all CPU time of this process is the server's.
type Remote struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner

	// Owned by the caller.
	at    time.Time // when the last awaited count was reached
	began time.Time
	lived time.Duration // from Spawn to Close
}

// Spawn starts a Fleet in a child process. The child runs this program, whose main function must call Child first.
func Spawn(p Plan) (*Remote, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	r := &Remote{cmd: exec.Command(os.Args[0]), began: time.Now()}
	r.cmd.Env = append(os.Environ(), childEnv+"=1")
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(out)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = r.in.Write(append(b, '\n'))
	return r, err
}

// Await returns when the clients have received n responses in all since Spawn, or one of them has ended. Reached tells
// when that was.
func (r *Remote) Await(n int) error {
	if _, err := fmt.Fprintln(r.in, n); err != nil {
		return err
	}
	if !r.out.Scan() {
		return errors.New("the fleet's process has ended")
	}
	at, err := strconv.ParseInt(r.out.Text(), 10, 64)
	if err != nil {
		return errors.New(r.out.Text())
	}
	r.at = time.Unix(0, at)
	return nil
}

// Reached returns when the last awaited count was reached, by the clients' clock, without the time that the news took
// to reach this process.
func (r *Remote) Reached() time.Time { return r.at }

// Close ends the process.
func (r *Remote) Close() error {
	r.in.Close()
	err := r.cmd.Wait()
	r.lived = time.Since(r.began)
	return err
}

// Processors returns how many processors the process kept busy on average. The caller must call Close first.
func (r *Remote) Processors() float64 {
	used := r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
	return used.Seconds() / r.lived.Seconds()
}

// Child runs the clients and exits if this process is the child of a Remote; else it does nothing.
func Child() {
	if os.Getenv(childEnv) == "" {
		return
	}
	if err := child(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child runs the clients of the plan in the first line. Each further line is a number of responses to await.
func child(in *bufio.Reader) error {
	text, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var p Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	f, err := p.start()
	if err != nil {
		return err
	}
	defer f.Close()
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		var n int
		if _, err := fmt.Sscan(commands.Text(), &n); err != nil {
			return err
		}
		at, err := f.Await(context.Background(), n)
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(at.UnixNano())
		}
	}
	return nil
}

// clients are a Fleet, a Hostile fleet, or Busy.
type clients interface {
	Await(ctx context.Context, n int) (time.Time, error)
	Close()
}

// start starts the clients of p.
func (p Plan) start() (clients, error) {
	if p.Busy > 0 {
		return StartBusy(p.Busy), nil
	}
	dial := func() (net.Conn, error) { return net.Dial(p.Network, p.Address) }
	if p.Pace > 0 {
		return StartHostile(p.Clients, p.Pace, dial), nil
	}
	nodes, err := nodesOf(p)
	if err != nil {
		return nil, err
	}
	return Start(Options{Clients: p.Clients, Delta: p.Delta, Subscriptions: p.Subscriptions, Dial: dial,
		Node: func(i int) *corev3.Node { return nodes[i] }})
}

// nodesOf returns the nodes of the clients of p.
func nodesOf(p Plan) ([]*corev3.Node, error) {
	all := &corev3.Node{}
	if len(p.Node) > 0 {
		if err := protojson.Unmarshal(p.Node, all); err != nil {
			return nil, err
		}
	}
	out := make([]*corev3.Node, p.Clients)
	for i := range out {
		out[i] = &corev3.Node{Id: all.Id, Cluster: all.Cluster, Metadata: proto.CloneOf(all.Metadata),
			Locality:   proto.CloneOf(all.Locality),
			Extensions: slices.Clip(all.Extensions)}
		if strings.Contains(all.Id, "%d") {
			out[i].Id = fmt.Sprintf(all.Id, i)
		}
		if i < len(p.Nodes) {
			if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(p.Nodes[i], out[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
