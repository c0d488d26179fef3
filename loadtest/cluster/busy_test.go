package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/loadtest/mesh"
)

// script is an API server that answers one request after the other.
type script struct {
	answers []answer
	asked   []string
}

type answer struct {
	code   int
	reason metav1.StatusReason
	labels map[string]string
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Method)
	a := answer{code: http.StatusTeapot}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	var body any = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Code: int32(a.code), Reason: a.reason}
	if a.code < 300 {
		body = metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: fmt.Sprint(len(s.asked)), Labels: a.labels}}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// scripted returns how a server of those answers is spoken to.
func scripted(t *testing.T, answers ...answer) (*api, *script) {
	t.Helper()
	s := &script{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: \""+
		server.URL+
		"\"}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"), 0o600))
	a, err := connect(Options{Kubeconfig: file})
	must(t, err)
	return a, s
}

// A server that has too much to do is asked again; what it did all the same is found. What it refuses for good is an
// error at once.
func TestBusyServers(t *testing.T) {
	ours := map[string]string{label: still}
	done, timeout := answer{code: 200}, answer{code: 504, reason: metav1.StatusReasonTimeout}
	exists, conflict := answer{code: 409, reason: metav1.StatusReasonAlreadyExists},
		answer{code: 409, reason: metav1.StatusReasonConflict}
	gone := answer{code: 404, reason: metav1.StatusReasonNotFound}
	for _, c := range []struct {
		name, before string
		answers      []answer
		want, err    string
	}{
		{"new", "", []answer{done}, "POST", ""},
		{"known", "7", []answer{done}, "PUT", ""},
		{"busy", "", []answer{timeout, {code: 500, reason: metav1.StatusReasonInternalError}, done}, "POST POST POST",
			""},
		{"done all the same", "", []answer{timeout, exists, {code: 200, labels: ours}, done}, "POST POST GET PUT", ""},
		{"changed meanwhile", "7", []answer{conflict, {code: 200, labels: ours}, done}, "PUT GET PUT", ""},
		{"gone meanwhile", "7", []answer{gone, done}, "PUT POST", ""},
		{"there and gone", "", []answer{exists, gone, done}, "POST GET POST", ""},
		{"somebody else's", "", []answer{exists, {code: 200}}, "POST GET",
			"Service team-000/service-00000: is there, and was not made by a load test"},
		{"refused", "", []answer{{code: 422, reason: metav1.StatusReasonInvalid}}, "POST",
			"Service team-000/service-00000: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, s := scripted(t, c.answers...)
			o := dress(serviceOf(mesh.New(shape(t, "small"))))
			version, err := a.put(t.Context(), a.kinds["Service"], o, c.before)
			if got := strings.Join(s.asked, " "); got != c.want {
				t.Errorf("asked %s, want %s", got, c.want)
			}
			if c.err == "" && (err != nil || version != fmt.Sprint(len(s.asked))) || c.err != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), c.err)) {
				t.Errorf("version %s, error %v", version, err)
			}
		})
	}
}

// A pod cannot be changed: it is deleted first, and made again with its status.
func TestFrozenObjectsAreMadeAnew(t *testing.T) {
	a, s := scripted(t, answer{code: 503, reason: metav1.StatusReasonServiceUnavailable}, answer{code: 200},
		answer{code: 200}, answer{code: 200})
	_, err := a.put(t.Context(), a.kinds["Pod"], dress(mesh.New(shape(t, "small")).Pod(0)), "7")
	if want := []string{"DELETE", "DELETE", "POST", "PUT"}; err != nil || !slices.Equal(s.asked, want) {
		t.Error(s.asked, err)
	}
}

func serviceOf(m *mesh.Mesh) mesh.Object {
	for o := range m.Objects() {
		if kindOf(o) == "Service" {
			return o
		}
	}
	panic("a mesh without services")
}
