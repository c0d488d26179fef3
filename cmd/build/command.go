package build

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// Command returns the command "version" of a program: it prints one line with the program's name, its build, platform
// and Go version, and after them what else there is to say of this build.
func Command(program string, more ...string) *cobra.Command {
	line := append([]string{program, Text(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}, more...)
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(line, " "))
		},
	}
}
