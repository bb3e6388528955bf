package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// format is the output format of a command.
type format string

const (
	formatTable format = "table" // tables and sentences, for people
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// addOutputFlags declares --output, and --json as a shorthand for --output json, for the command
// and its subcommands.
func addOutputFlags(cmd *cobra.Command) {
	chosen := &outputFlag{format: formatTable}
	flags := cmd.PersistentFlags()
	flags.VarP(chosen, "output", "o", "output format: json, yaml or table")
	flags.VarPF(&jsonFlag{chosen}, "json", "", "shorthand for --output json").NoOptDefVal = "true"
	offer(cmd, "output", string(formatJSON), string(formatYAML), string(formatTable))
}

// outputFlag is the value of --output.
type outputFlag struct {
	format format
	given  bool
}

var _ pflag.Value = (*outputFlag)(nil)

func (o *outputFlag) String() string { return string(o.format) }
func (o *outputFlag) Type() string   { return "format" }

func (o *outputFlag) Set(text string) error {
	f := format(text)
	switch f {
	case formatTable, formatJSON, formatYAML:
	default:
		return fmt.Errorf("must be json, yaml or table%s", didYouMean(text, []string{"json", "yaml", "table"}))
	}
	if o.given && o.format != f {
		return fmt.Errorf("the output format is already %s: use --output once, or --json alone", o.format)
	}
	o.format, o.given = f, true
	return nil
}

// jsonFlag is the value of --json.
type jsonFlag struct{ output *outputFlag }

func (j *jsonFlag) String() string   { return "false" }
func (j *jsonFlag) Type() string     { return "bool" }
func (j *jsonFlag) IsBoolFlag() bool { return true }

func (j *jsonFlag) Set(text string) error {
	switch text {
	case "true":
		return j.output.Set(string(formatJSON))
	case "false":
		return nil
	}
	return fmt.Errorf("--json does not accept a value: use --output")
}

// outputOf returns the format that the command line selects.
func outputOf(cmd *cobra.Command) format {
	if flag := cmd.Flag("output"); flag != nil {
		if o, ok := flag.Value.(*outputFlag); ok {
			return o.format
		}
	}
	return formatTable
}

// screenFor returns the screen for the standard output of the command, in the selected format.
func screenFor(cmd *cobra.Command) screen {
	s := screenOf(cmd.OutOrStdout())
	s.format = outputOf(cmd)
	return s
}

// structured reports whether the output is for programs: --output json or yaml.
func (s screen) structured() bool { return s.format == formatJSON || s.format == formatYAML }

// value writes a value as JSON on one line, or as YAML.
func (s screen) value(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	return s.document(body)
}

// document writes a JSON document verbatim, or the same data as YAML.
func (s screen) document(body []byte) error {
	if s.format != formatYAML {
		return s.raw(body)
	}
	text, err := yamlOf(body)
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	return s.raw(text)
}

// entry writes one document of a stream: a line of JSON, or a YAML document after a separator.
func (s screen) entry(body []byte) error {
	if s.format == formatYAML {
		if err := s.text("---\n"); err != nil {
			return err
		}
	}
	return s.document(body)
}
