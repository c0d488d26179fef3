package ingest

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
	clientnet "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotd/pilotd/snapshot/value"
)

// TestLargestRegexReadsEveryField: whatever field of a route holds a regular expression, it counts.
func TestLargestRegexReadsEveryField(t *testing.T) {
	n := 0
	var walk func(path string, m protoreflect.Message, root *networking.HTTPRoute, depth int)
	walk = func(path string, m protoreflect.Message, root *networking.HTTPRoute, depth int) {
		switch x := m.Interface().(type) {
		case *networking.StringMatch:
			x.MatchType = &networking.StringMatch_Regex{Regex: "[ab]{50}"}
		case *networking.RegexRewrite:
			x.Match = "[ab]{50}"
		default:
			if depth == 0 {
				return
			}
			for i := range m.Descriptor().Fields().Len() {
				f := m.Descriptor().Fields().Get(i)
				at := path + "." + f.JSONName()
				switch {
				case f.IsMap() && f.MapValue().Message() != nil:
					value := m.Mutable(f).Map().Mutable(protoreflect.ValueOfString("x").MapKey())
					walk(at, value.Message(), root, depth-1)
				case f.IsMap() || f.Message() == nil:
					continue
				case f.IsList():
					walk(at, m.Mutable(f).List().AppendMutable().Message(), root, depth-1)
				default:
					walk(at, m.Mutable(f).Message(), root, depth-1)
				}
				m.Clear(f)
			}
			return
		}
		n++
		if got := largestRegex(&networking.VirtualService{Http: []*networking.HTTPRoute{{},
			proto.Clone(root).(*networking.HTTPRoute)}}); got != 54 {
			t.Errorf("%s: the largest program has %d instructions, want 54", path, got)
		}
	}
	root := &networking.HTTPRoute{}
	walk("http", root.ProtoReflect(), root, 4)
	if n < 9 {
		t.Errorf("only %d fields hold expressions", n)
	}
}

// TestRegexSizeOfDelegates: the largest expression of a root and its delegates counts, until it is gone.
func TestRegexSizeOfDelegates(t *testing.T) {
	j := newJoiner("cluster.local", "Kubernetes")
	match := func(expression string) []*networking.HTTPMatchRequest {
		return []*networking.HTTPMatchRequest{{
			Headers: map[string]*networking.StringMatch{"x": {MatchType: &networking.StringMatch_Regex{Regex: expression}}}}}
	}
	object := func(name string, hosts []string, r *networking.HTTPRoute) *clientnet.VirtualService {
		return &clientnet.VirtualService{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec: networking.VirtualService{Hosts: hosts, Http: []*networking.HTTPRoute{r}}}
	}
	root := object("root", []string{"x.example.com"},
		&networking.HTTPRoute{Delegate: &networking.Delegate{Name: "part"}})
	size := func(part *networking.HTTPRoute) int {
		j.put(value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: "part"}, object("part", nil, part))
		j.put(value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: "root"}, root)
		return j.resolve(value.ObjectKey{Kind: value.KindVirtualService, Namespace: "a", Name: "root"}, root).RegexSize
	}
	if got := size(&networking.HTTPRoute{Match: match("[ab]{50}")}); got != 54 {
		t.Errorf("the delegate's: %d", got)
	}
	if got := size(&networking.HTTPRoute{}); got != 0 {
		t.Errorf("the delegate without: %d", got)
	}
	root.Spec.Http[0].Match = match("[ab]{60}")
	if got := size(&networking.HTTPRoute{
		Match: []*networking.HTTPMatchRequest{{Headers: map[string]*networking.StringMatch{
			"y": {MatchType: &networking.StringMatch_Exact{Exact: "y"}}}}}}); got != 64 {
		t.Errorf("the root's: %d", got)
	}
}
