package inject

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"istio.io/api/annotation"

	"github.com/pilotd/pilotd/inject/overlay"
	"github.com/pilotd/pilotd/proxyconfig"
)

// Injector injects pods under one set of settings. It is immutable and may be used by many at once.
type Injector struct {
	settings      Settings
	values        map[string]any
	chart         *overlay.Values
	custom        map[string]*overlay.Template
	never, always []labels.Selector
	schema        strategicpatch.LookupPatchMeta
}

// New makes an Injector. It refuses settings of which a part cannot be read, templates included.
func New(s Settings) (*Injector, error) {
	in := &Injector{settings: s, custom: map[string]*overlay.Template{}}
	if in.settings.Revision == "" {
		in.settings.Revision = "default"
	}
	var err error
	if in.values, in.chart, err = overlay.ReadValues(s.Values); err != nil {
		return nil, err
	}
	around := overlay.Surroundings{Env: s.Env, DefaultProxy: s.DefaultProxy}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Templates)) {
		if in.custom[name], err = overlay.Parse(name, s.Config.Templates[name], around); err != nil {
			return nil, fmt.Errorf("injector's config: templates: %s", oneLine(err))
		}
	}
	if in.never, err = selectors("neverInjectSelector", s.Config.NeverInjectSelector); err != nil {
		return nil, err
	}
	if in.always, err = selectors("alwaysInjectSelector", s.Config.AlwaysInjectSelector); err != nil {
		return nil, err
	}
	in.schema, err = strategicpatch.NewPatchMetaFromStruct(corev1.Pod{})
	return in, err
}

// Request is a pod that may be injected.
type Request struct {
	Pod *corev1.Pod // not changed
	// Namespace is the pod's where it has none itself.
	Namespace string
	// NamespaceAnnotations are those of that namespace: OpenShift says there as whom its pods run.
	NamespaceAnnotations map[string]string
	// NativeSidecars has the proxy run as a native sidecar where the pod does not say; the Settings may too.
	NativeSidecars bool
	// Workload is what the pod belongs to; when nil it is told from the pod's owner.
	Workload *Workload
	// Env are variables that the proxy gets whatever templates say: cluster and network of the caller's path.
	Env map[string]string
}

// Workload is what a pod belongs to.
type Workload struct {
	Type metav1.TypeMeta
	Name types.NamespacedName
}

// Result is what becomes of a pod.
type Result struct {
	// Pod is the injected pod, or the request's own where it was not injected.
	Pod *corev1.Pod
	// Skipped says why the pod was not injected; empty when it was.
	Skipped string
	// Warnings are for who made the pod: settings that have no effect.
	Warnings []string
}

// injection is one pod on its way.
type injection struct {
	*Injector
	req      Request
	original *corev1.Pod
	before   *status // of an earlier injection, or nil
	data     overlay.Data
	env      map[string]string // cluster and network

	injected *corev1.Pod // what the templates make, alone
	pod      *corev1.Pod // the result
	warnings []string    // of custom templates
}

// Inject injects a pod, or says why it does not. An error is about the pod: it names the annotation or the template.
func (in *Injector) Inject(req Request) (Result, error) {
	original := req.Pod.DeepCopy()
	original.Namespace = cmp.Or(original.Namespace, req.Namespace)
	warnings, reason := in.decide(original)
	if reason != "" {
		return Result{Pod: req.Pod, Skipped: reason, Warnings: warnings}, nil
	}
	forgetAssignedUser(original, req.NamespaceAnnotations)
	more, err := checkAnnotations(original.Annotations)
	if err != nil {
		return Result{}, err
	}
	i := &injection{Injector: in, req: req, original: original}
	for _, step := range []func() error{i.readStatus, i.describe, i.overlay, i.restoreUsers, i.finish} {
		if err := step(); err != nil {
			return Result{}, err
		}
	}
	i.pod.Namespace = req.Pod.Namespace
	return Result{Pod: i.pod, Warnings: slices.Concat(warnings, more, i.warnings)}, nil
}

// describe collects what templates see.
func (i *injection) describe() error {
	clean, err := i.uninjected()
	if err != nil {
		return err
	}
	config, err := i.proxyConfig(i.original)
	if err != nil {
		return err
	}
	workload := i.req.Workload
	if workload == nil {
		workload = new(ownerOf(i.original))
	}
	i.env = i.clusterEnv()
	uid, gid, err := proxyIDs(i.req.NamespaceAnnotations)
	if err != nil {
		return err
	}
	s := &i.settings
	i.data = overlay.Data{TypeMeta: workload.Type, DeploymentMeta: workload.Name, ObjectMeta: clean.ObjectMeta,
		Spec: clean.Spec, ProxyConfig: config, MeshConfig: s.Mesh, Values: i.values, Revision: s.Revision,
		NativeSidecars: s.NativeSidecars || i.req.NativeSidecars,
		ProxyImage:     proxyImage(i.chart, config.GetImage(), clean.Annotations),
		ProxyUID:       uid, ProxyGID: gid, InboundTrafficPolicyMode: inboundMode(s.Mesh),
		CompliancePolicy: s.CompliancePolicy, Chart: i.chart, DefaultProxy: s.DefaultProxy}
	return nil
}

// overlay runs the templates that the pod asks for and merges what they make, each onto the one before.
func (i *injection) overlay() error {
	names := i.templates()
	all := i.overlayAll
	if len(names) == 1 && i.custom[names[0]] == nil {
		all = i.overlayOne
	}
	if err := all(names...); err != nil {
		return err
	}
	if spec := &i.injected.Spec; find(spec.InitContainers, overlay.ProxyContainer) != nil {
		// A template that goes through all containers means the proxy that becomes a native sidecar by another one.
		spec.Containers = slices.DeleteFunc(spec.Containers,
			func(c corev1.Container) bool { return c.Name == overlay.ProxyContainer })
	}
	return nil
}

// overlayAll is overlay for any templates.
func (i *injection) overlayAll(names ...string) error {
	alone := map[string]any{}
	whole, err := toMap(i.original)
	if err != nil {
		return err
	}
	for _, name := range names {
		over, err := i.run(name)
		if err != nil {
			return err
		}
		if alone, err = i.merge(alone, runtime.DeepCopyJSON(over)); err != nil {
			return fmt.Errorf("template %s cannot be merged onto those before it: %w", name, err)
		}
		if whole, err = i.merge(whole, over); err != nil {
			return fmt.Errorf("template %s cannot be merged onto the pod: %w", name, err)
		}
	}
	if i.injected, err = fromMap(alone); err != nil {
		return err
	}
	i.pod, err = fromMap(whole)
	return err
}

// overlayOne is overlay for a built-in template alone, in half the time: lists of containers and volumes of which the
// pod has none need no merging.
func (i *injection) overlayOne(names ...string) (err error) {
	if i.injected, err = i.builtin(names[0]); err != nil {
		return err
	}
	rest := *i.injected
	added, has := i.injected.DeepCopy().Spec, &i.original.Spec
	rest.Spec.Containers, added.Containers = foreign(has.Containers, added.Containers, nameOfContainer)
	rest.Spec.InitContainers, added.InitContainers = foreign(has.InitContainers, added.InitContainers, nameOfContainer)
	rest.Spec.Volumes, added.Volumes = foreign(has.Volumes, added.Volumes, nameOfVolume)
	rest.Spec.ImagePullSecrets, added.ImagePullSecrets = foreign(has.ImagePullSecrets, added.ImagePullSecrets,
		nameOfSecret)
	if err := i.mergeRest(&rest); err != nil {
		return fmt.Errorf("template %s cannot be merged onto the pod: %w", names[0], err)
	}
	spec := &i.pod.Spec
	spec.Containers = slices.Insert(spec.Containers, 0, added.Containers...)
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, added.InitContainers...)
	spec.Volumes = slices.Insert(spec.Volumes, 0, added.Volumes...)
	spec.ImagePullSecrets = slices.Insert(spec.ImagePullSecrets, 0, added.ImagePullSecrets...)
	return nil
}

// mergeRest merges what is left of an overlay onto the pod. Labels and annotations alone need no maps of all.
func (i *injection) mergeRest(rest *corev1.Pod) error {
	more := *rest
	more.Labels, more.Annotations = nil, nil
	if reflect.DeepEqual(&more, &corev1.Pod{}) {
		i.pod = i.original.DeepCopy()
		i.pod.Labels = proxyconfig.MergedMap(i.pod.Labels, rest.Labels)
		i.pod.Annotations = proxyconfig.MergedMap(i.pod.Annotations, rest.Annotations)
		return nil
	}
	whole, err := toMap(i.original)
	if err != nil {
		return err
	}
	over, err := toMap(rest)
	if err != nil {
		return err
	}
	prune(over)
	if whole, err = i.merge(whole, over); err != nil {
		return err
	}
	i.pod, err = fromMap(whole)
	return err
}

// foreign returns over as what is to be merged with has, or, if these have no name in common, as what a merge would put
// before them.
func foreign[T any](has, over []T, name func(*T) string) (merged, before []T) {
	if kept, fresh := partition(has, over, name); len(kept) == 0 {
		return nil, fresh
	}
	return over, nil
}

// templates returns the names of the templates that apply to the pod.
func (i *injection) templates() []string {
	if text, ok := i.original.Annotations[annotation.InjectTemplates.Name]; ok {
		var names []string
		for n := range strings.SplitSeq(text, ",") {
			names = append(names, strings.TrimSpace(n))
		}
		return i.settings.Config.resolve(names)
	}
	if len(i.settings.Config.DefaultTemplates) == 0 {
		return i.settings.Config.resolve([]string{"sidecar"})
	}
	return i.settings.Config.resolve(i.settings.Config.DefaultTemplates)
}

// BuiltinOnly tells whether only built-in templates apply to a pod. Those are known in what they look at; a custom one
// may look at anything.
func (in *Injector) BuiltinOnly(pod *corev1.Pod) bool {
	if len(in.custom) == 0 {
		return true
	}
	i := &injection{Injector: in, original: pod}
	return !slices.ContainsFunc(i.templates(), func(name string) bool { return in.custom[name] != nil })
}

// builtin makes the overlay of a built-in template.
func (i *injection) builtin(name string) (*corev1.Pod, error) {
	template := overlay.Builtin(name)
	if template == nil {
		return nil, fmt.Errorf("there is no template %q; there are %s", name, strings.Join(i.templateNames(), ", "))
	}
	return template(&i.data)
}

// run makes the overlay of one template.
func (i *injection) run(name string) (map[string]any, error) {
	if custom := i.custom[name]; custom != nil {
		over, warnings, err := custom.Execute(&i.data)
		i.warnings = append(i.warnings, warnings...)
		return over, err
	}
	pod, err := i.builtin(name)
	if err != nil {
		return nil, err
	}
	over, err := toMap(pod)
	prune(over)
	return over, err
}

func (in *Injector) templateNames() []string {
	names := append(overlay.BuiltinNames(), slices.Collect(maps.Keys(in.custom))...)
	slices.Sort(names)
	return slices.Compact(names)
}
