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
		Short: "Start Envoy and serve it",
		Args:  cobra.MinimumNArgs(1),
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
	f.StringVar(&o.Domain, "domain", "", "the pod's DNS domain; NAMESPACE.svc.cluster.local when empty")
	f.StringVar(&o.ProxyLogLevel, "proxyLogLevel", "warning", "Envoy's level of logging")
	f.StringVar(&o.ProxyComponentLogLevel, "proxyComponentLogLevel", "", "Envoy's levels by component: misc:error,upstream:info")
	f.StringVar(&o.OutlierLog, "outlierLogPath", "", "file for events of outlier detection; none when empty")
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
		"least level that is logged: default:debug, info, warn, error or none; levels of other scopes have no effect")
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
