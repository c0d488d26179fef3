package parts

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	_ "google.golang.org/grpc/xds" // the resolver of xds:/// targets
	"google.golang.org/grpc/xds/csds"

	statuspb "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"

	"github.com/pilotd/pilotd/e2e/testnet"
)

// targetEnv makes the test binary run as a proxyless gRPC client.
const targetEnv = "PILOTD_E2E_GRPC_TARGET"

// GRPCClient is a proxyless gRPC client in a process of its own, in a pod. It is configured like pods of such clients,
// with GRPC_XDS_BOOTSTRAP. The program is the test binary itself.
type GRPCClient struct {
	*Process
	// Owned by the test's goroutine.
	orders  io.Writer
	reports *bufio.Scanner
}

// grpcReport is the client's report about one order.
type grpcReport struct {
	// Names counts the answers by server.
	Names map[string]int
	Error string
	// Refused lists the resources that the client refused.
	Refused []string
}

// StartGRPCClient starts a client of a target ("xds:///host:port").
func StartGRPCClient(t testing.TB, pod *testnet.Pod, w Workload, xds, target string) *GRPCClient {
	t.Helper()
	metadata := w.metadata()
	metadata["GENERATOR"] = "grpc"
	path := filepath.Join(t.TempDir(), "grpc-bootstrap.json")
	writeJSON(t, path, tree{
		"xds_servers": []tree{{
			"server_uri": xds, "channel_creds": []tree{{"type": "insecure"}}, "server_features": []string{"xds_v3"},
		}},
		"node": tree{"id": w.nodeID(string(Sidecar)), "metadata": metadata, "locality": tree{}},
	})
	return StartGRPCClientOf(t, pod, path, target)
}

// StartGRPCClientOf starts a client of a target with an existing bootstrap file.
func StartGRPCClientOf(t testing.TB, pod *testnet.Pod, path, target string) *GRPCClient {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+path, targetEnv+"="+target)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reports, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &GRPCClient{
		Process: startProcess(t, launch{name: "grpc-" + pod.IP, cmd: cmd, start: pod.Start, pipe: true}),
		orders:  orders, reports: bufio.NewScanner(reports),
	}
}

// Call makes n calls and counts the answers by server. It returns an error if a call fails or the client refused a
// resource.
func (c *GRPCClient) Call(n int) (map[string]int, error) {
	if _, err := fmt.Fprintln(c.orders, n); err != nil {
		return nil, err
	}
	if !c.reports.Scan() {
		return nil, fmt.Errorf("%s says nothing more: %v", c.name, c.reports.Err())
	}
	var r grpcReport
	if err := json.Unmarshal(c.reports.Bytes(), &r); err != nil {
		return nil, err
	}
	if r.Error != "" || len(r.Refused) > 0 {
		return r.Names, fmt.Errorf("%s: %s; refused %v", c.name, r.Error, r.Refused)
	}
	return r.Names, nil
}

// GRPCClientMain runs the client if this process is one, until its standard input is closed, and then returns true.
func GRPCClientMain() bool {
	target := os.Getenv(targetEnv)
	if target == "" {
		return false
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	defer conn.Close()
	out := json.NewEncoder(os.Stdout)
	for {
		var n int
		if _, err := fmt.Scanln(&n); err != nil {
			return true
		}
		r := callTimes(testpb.NewTestServiceClient(conn), n)
		r.Refused = refusedByClient()
		if err := out.Encode(r); err != nil {
			return true
		}
	}
}

func callTimes(client testpb.TestServiceClient, n int) grpcReport {
	r := grpcReport{Names: make(map[string]int)}
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := client.UnaryCall(ctx, &testpb.SimpleRequest{})
		cancel()
		if err != nil {
			r.Error = err.Error()
			return r
		}
		r.Names[answer.ServerId]++
	}
	return r
}

// refusedByClient asks the client's status service which resources it NACKed.
func refusedByClient() []string {
	server, err := csds.NewClientStatusDiscoveryServer()
	if err != nil {
		return []string{err.Error()}
	}
	defer server.Close()
	resp, err := server.FetchClientStatus(context.Background(), &statuspb.ClientStatusRequest{})
	if err != nil {
		return []string{err.Error()}
	}
	var refused []string
	for _, config := range resp.Config {
		for _, r := range config.GenericXdsConfigs {
			if e := r.GetErrorState(); e != nil {
				refused = append(refused, r.Name+": "+e.Details)
			}
		}
	}
	return refused
}
