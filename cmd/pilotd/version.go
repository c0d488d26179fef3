package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pilotd/pilotd/cmd/build"
	"github.com/pilotd/pilotd/gen"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is, and which protobuf encoder is in",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "pilotd %s %s/%s %s encoder=%s\n", build.Text(), runtime.GOOS, runtime.GOARCH,
				runtime.Version(), gen.Encoder)
		},
	}
}
