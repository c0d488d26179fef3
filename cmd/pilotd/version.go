package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/gen"
)

// build says which build this is.
func build() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return version
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is, and which protobuf encoder is in",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "pilotd %s %s/%s %s encoder=%s\n", build(), runtime.GOOS, runtime.GOARCH,
				runtime.Version(), gen.Encoder)
		},
	}
}
