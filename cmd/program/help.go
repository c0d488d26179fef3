package program

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is a part of a command's help below a title: flags, or names with what they mean.
type Section struct {
	Title string
	Flags *pflag.FlagSet
	// Names are pairs of a name and its meaning, such as environment variables.
	Names [][2]string
}

// helpWidth is the width in columns to which help is wrapped.
const helpWidth = 110

// Flags returns a section with the flags that define defines, in the order in which it defines them.
func Flags(title string, define func(*pflag.FlagSet)) Section {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	return Section{Title: title, Flags: f}
}

// Explain adds the flags of all sections to a command, and makes its help list them section by section.
func Explain(cmd *cobra.Command, sections ...Section) *cobra.Command {
	for _, s := range sections {
		if s.Flags != nil {
			cmd.Flags().AddFlagSet(s.Flags)
		}
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStderr(), usage(cmd, sections))
		return err
	})
	return cmd
}

func usage(cmd *cobra.Command, sections []Section) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Usage:\n  %s\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&out, "\nAliases:\n  %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, s := range sections {
		fmt.Fprintf(&out, "\n%s:\n", s.Title)
		if s.Flags != nil {
			out.WriteString(s.Flags.FlagUsagesWrapped(helpWidth))
		}
		writeNames(&out, s.Names)
	}
	return out.String()
}

// writeNames writes names in a column and their meanings, wrapped, in another one. The meaning of a long name begins on
// the line below it.
func writeNames(out *strings.Builder, names [][2]string) {
	const longest = 32
	column := 0
	for _, n := range names {
		if len(n[0]) <= longest {
			column = max(column, len(n[0])+5)
		}
	}
	for _, n := range names {
		name, meaning := n[0], n[1]
		line := fmt.Sprintf("  %-*s", column-2, name)
		if len(name) > longest {
			fmt.Fprintf(out, "  %s\n", name)
			line = strings.Repeat(" ", column)
		}
		indent, empty := strings.Repeat(" ", column), true
		for word := range strings.FieldsSeq(meaning) {
			if !empty && len(line)+1+len(word) > helpWidth {
				fmt.Fprintln(out, line)
				line, empty = indent, true
			}
			if !empty {
				line += " "
			}
			line, empty = line+word, false
		}
		fmt.Fprintln(out, line)
	}
}
