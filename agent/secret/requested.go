package secret

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"github.com/pilotd/pilotd/agent/cell"
	"github.com/pilotd/pilotd/agent/upstream"
)

// Pauses after requests that fail: they double from the first to the last, and each is shortened at random by up to
// half, so that pods that started together do not retry together.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = time.Minute
)

// answerTime is how long a certificate authority may take to answer, before it is asked again.
const answerTime = 15 * time.Second

// Requested gets the workload's certificate from the control plane, and renews it before it expires.
type Requested struct {
	// Server is the control plane that signs certificates.
	Server upstream.Server
	// ID is the SPIFFE ID of the request. The server issues the one that the token proves.
	ID  string
	Key KeyKind
	// Life is the requested lifetime.
	Life time.Duration
	// Grace is the part of a certificate's lifetime that is left when it is renewed; Jitter is the random deviation
	// from that, as a part of the lifetime.
	Grace, Jitter float64
	// Signer is the name of the signer that the server should use. It is sent with the request.
	Signer string
	// Output is a directory that each certificate is written to, for other containers of the pod. Empty means none.
	Output string
	Log    *slog.Logger

	// Newest is the certificate in use. A running pod keeps it after it has expired, if no newer one is there.
	Newest cell.Cell[Material]
}

// Run requests and renews certificates until ctx ends.
func (r *Requested) Run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		m, err := r.ask(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			wait := pause - time.Duration(rand.Float64()*float64(pause)/2) // #nosec G404 -- it spreads load, and is no secret
			r.Log.Warn("no certificate", "error", err, "server", r.Server.Address, "again", wait.Round(time.Millisecond))
			sleep(ctx, wait)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		if r.Output != "" {
			if err := m.write(r.Output); err != nil {
				r.Log.Error("the certificate is not written", "error", err, "directory", r.Output)
			}
		}
		r.Newest.Set(m)
		wait := r.until(m, time.Now())
		r.Log.Info("certificate", "until", m.NotAfter.UTC().Format(time.RFC3339), "next", wait.Round(time.Second))
		sleep(ctx, wait)
	}
}

// until returns how long a certificate is used before it is renewed.
func (r *Requested) until(m *Material, now time.Time) time.Duration {
	left := m.NotAfter.Sub(now)
	part := 1 - r.Grace + r.Jitter*(2*rand.Float64()-1) // #nosec G404 -- it spreads load, and is no secret
	// A certificate that expires at once must not make the agent ask the server without a pause.
	return max(time.Duration(float64(left)*min(max(part, 0), 1)), time.Second)
}

// ask makes a key and has the server sign a certificate for it. It uses a connection of its own: requests are rare, and
// an idle connection for each pod would cost the server memory.
func (r *Requested) ask(ctx context.Context) (*Material, error) {
	key, keyText, err := r.Key.generate()
	if err != nil {
		return nil, err
	}
	csr, err := request(key, r.ID)
	if err != nil {
		return nil, err
	}
	conn, err := r.Server.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errHangs)
	defer cancel()
	answer, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx,
		&securityv1.IstioCertificateRequest{Csr: string(csr), ValidityDuration: int64(r.Life / time.Second),
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"CertSigner": structpb.NewStringValue(r.Signer)}}})
	if err != nil {
		if errors.Is(context.Cause(ctx), errHangs) {
			return nil, errHangs
		}
		return nil, err
	}
	chain := answer.GetCertChain()
	if len(chain) < 2 {
		return nil, fmt.Errorf("%w: the answer has %d parts, want the certificate first and roots last", ErrMaterial,
			len(chain))
	}
	return newMaterial([]byte(joined(chain)), keyText, []byte(chain[len(chain)-1]))
}

// errHangs reports that the server took the request and did not answer.
var errHangs = fmt.Errorf("%w: no answer in %v", ErrMaterial, answerTime)

// joined joins a certificate chain into one PEM text.
func joined(chain []string) string {
	var b strings.Builder
	for _, c := range chain {
		b.WriteString(strings.TrimRight(c, "\n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
