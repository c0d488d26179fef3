package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/agent"
	"github.com/pilotd/pilotd/agent/pod"
)

func proxyCommand() *cobra.Command {
	o := agent.Options{}
	logs := logFlags{}
	cmd := &cobra.Command{
		Use:   "proxy sidecar|router",
		Short: "Run Envoy, and serve its certificates, configuration, probes and metrics",
		Long: `Run Envoy, as a sidecar or as a gateway (router). The agent serves it its configuration and its certificates, answers
the application's probes, and merges the metrics of both. It reads its settings from the container's environment
variables; docs/agent.md of the project lists them.`,
		Args: cobra.MinimumNArgs(1),
		// Pods made for another release pass flags that are unknown here, and must start nevertheless.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := logs.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			o.Kind, o.Environ, o.Log = pod.Kind(args[0]), os.Environ(), log
			o.Stdout, o.Stderr = os.Stdout, os.Stderr
			warnUnknown(cmd.Flags(), os.Args, log)
			return agent.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Domain, "domain", "", "DNS domain of the pod; empty: NAMESPACE.svc.cluster.local")
	f.StringVar(&o.ProxyLogLevel, "proxyLogLevel", "warning", "Envoy's log level")
	f.StringVar(&o.ProxyComponentLogLevel, "proxyComponentLogLevel", "", "Envoy's log levels by component, such as misc:error,upstream:info")
	f.StringVar(&o.OutlierLog, "outlierLogPath", "", "`file` to which Envoy logs outlier detection; empty: none")
	logs.register(f)
	return cmd
}

// logFlags are the settings of a command's logs.
type logFlags struct {
	levels string
	json   bool
}

// flagSet is where a command defines its flags.
type flagSet interface {
	StringVar(p *string, name, value, usage string)
	BoolVar(p *bool, name string, value bool, usage string)
}

func (l *logFlags) register(f flagSet) {
	f.StringVar(&l.levels, "log_output_level", "default:info",
		"lowest logged `level`: default:debug, info, warn, error or none; levels of other scopes have no effect")
	f.BoolVar(&l.json, "log_as_json", false, "log as JSON")
}

func (l *logFlags) open(w io.Writer) (*slog.Logger, error) {
	level := slog.LevelInfo
	for part := range strings.SplitSeq(l.levels, ",") {
		scope, text, scoped := strings.Cut(strings.TrimSpace(part), ":")
		if !scoped {
			scope, text = "default", scope
		}
		if scope != "default" && scope != "all" {
			continue
		}
		if text == "none" {
			level = slog.LevelError + 4
		} else if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("--log_output_level=%s: want default:debug, info, warn, error or none", l.levels)
		}
	}
	o := &slog.HandlerOptions{Level: level}
	if l.json {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}
