package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/ingest"
	"github.com/pilotd/pilotd/inject"
	"github.com/pilotd/pilotd/inject/manifest"
)

// maxFile bounds the size of a file, in bytes.
const maxFile = 64 << 20

// injectOptions are the settings of "pilotctl inject". The names are those of "istioctl kube-inject".
type injectOptions struct {
	files                []string
	output               string
	config, values, mesh string
	namespace, revision  string
	native, quiet        bool
}

func injectCommand() *cobra.Command {
	var o injectOptions
	cmd := &cobra.Command{
		Use:   "inject -f FILE [flags]",
		Short: "Add proxies to the workloads in a file",
		Long: `Add proxies to the workloads in YAML files (Pods, Deployments, DaemonSets, StatefulSets, ReplicaSets, Jobs, CronJobs,
and Lists of them), in the same way as the webhook adds them to pods. Everything else is printed unchanged. For each
workload that is not injected the reason is printed on standard error.`,
		Example: `  pilotctl inject -f deployment.yaml | kubectl apply -f -
  pilotctl inject -f all.yaml --meshConfigFile mesh.yaml --valuesFile values.yaml -o injected.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "`file` to read; - is standard input; may be given several times")
	f.StringVarP(&o.output, "output", "o", "", "`file` to write; empty: standard output")
	f.StringVar(&o.config, "injectConfigFile", "", "`file` with the text under key config of the injector's ConfigMap")
	f.StringVar(&o.values, "valuesFile", "", "`file` with the values of the installation; they override the chart's defaults")
	f.StringVar(&o.mesh, "meshConfigFile", "", "`file` with the mesh configuration; it overrides the defaults")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of objects that do not name one")
	f.StringVarP(&o.revision, "revision", "r", "", "revision of the control plane that the proxies belong to")
	f.BoolVar(&o.native, "nativeSidecars", false,
		"run proxies as native sidecars unless a pod asks for the contrary; needs Kubernetes 1.29, and is what the webhook does from 1.33 on")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print warnings only, not what is left uninjected")
	return cmd
}

func (o *injectOptions) run(cmd *cobra.Command) error {
	if len(o.files) == 0 {
		return errors.New("want -f FILE: nothing to read")
	}
	in, err := o.injector()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for i, name := range o.files {
		text, err := readFile(name, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		file := manifest.File{Injector: in, Namespace: o.namespace, Note: func(object string, n manifest.Note) {
			if n.Warning || !o.quiet {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", object, n)
			}
		}}
		injected, err := file.Inject(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.Write(injected)
	}
	if o.output != "" {
		return os.WriteFile(o.output, out.Bytes(), 0o644) // #nosec G306 -- anyone may read manifests
	}
	_, err = cmd.OutOrStdout().Write(out.Bytes())
	return err
}

// injector makes the injector from the given files, and from defaults.
func (o *injectOptions) injector() (*inject.Injector, error) {
	var texts [3]string
	for i, name := range []string{o.config, o.values, o.mesh} {
		if name == "" {
			continue
		}
		text, err := readFile(name, nil)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	config, err := inject.ReadConfig(texts[0])
	if err != nil {
		return nil, err
	}
	mesh, err := ingest.ParseMesh(texts[2])
	if err != nil {
		return nil, err
	}
	return inject.New(inject.Settings{Config: config, Values: texts[1], Mesh: mesh,
		DefaultProxy: ingest.DefaultMesh().GetDefaultConfig(), Revision: o.revision, NativeSidecars: o.native})
}

// readFile reads a file; "-" is the standard input.
func readFile(name string, input io.Reader) ([]byte, error) {
	from := input
	if name != "-" || input == nil {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: more than %d MiB", name, maxFile>>20)
	}
	return text, err
}
