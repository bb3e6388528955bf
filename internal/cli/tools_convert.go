package cli

import (
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	toolformat "github.com/callyard/callyard/internal/format"
)

// exitSkipped is the exit code of `tools convert` if a tool or a call could not be converted.
const exitSkipped = 1

// maxConvert limits the size of a file of tools or calls, in bytes.
const maxConvert = 16 << 20

// converted is the structured output of `tools convert`, in the format of POST /convert.
type converted struct {
	From  string            `json:"from"`
	To    string            `json:"to"`
	Tools json.RawMessage   `json:"tools,omitempty"`
	Calls json.RawMessage   `json:"calls,omitempty"`
	Notes []toolformat.Note `json:"notes"`
}

func convertToolsCommand() *cobra.Command {
	var from, to string
	var calls bool
	cmd := &cobra.Command{
		Use:   "convert --from FORMAT --to FORMAT [FILE | -]",
		Short: "Convert tool definitions or tool calls between formats",
		Long: "convert reads tool definitions in one format and prints them in another. The formats are openai, openai-responses, anthropic, gemini and mcp. " +
			"The file has a list of tools, or an object with the member tools, such as a request to the provider; without FILE it is standard input. " +
			"With --calls it has tool calls: a list of them, the assistant message, or the whole answer of the provider. It does not require a running Callyard.\n\n" +
			"Each part that is missing from the output, or that differs there, is listed on standard error.\n\n" +
			"Exit code: 0 everything was converted, 1 a tool or a call could not be converted, 2 the command line or the file is invalid.",
		Example: "  callyard tools convert --from openai --to anthropic tools.json\n" +
			"  callyard tools convert --from gemini --to mcp --calls - < answer.json",
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := toolformat.Parse(from)
			if err != nil {
				return fail(exitUsage, "--from: %w", err)
			}
			t, err := toolformat.Parse(to)
			if err != nil {
				return fail(exitUsage, "--to: %w", err)
			}
			input, err := untilInterrupt(cmd.Context(), func() ([]byte, error) { return convertInput(cmd.InOrStdin(), args) })
			if err != nil {
				return err
			}
			return convertTools(screenFor(cmd), screenOf(cmd.ErrOrStderr()), f, t, input, calls)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the format of the file")
	cmd.Flags().StringVar(&to, "to", "", "the format to convert it to")
	for _, flag := range []string{"from", "to"} {
		offer(cmd, flag, providerFormats...)
		_ = cmd.MarkFlagRequired(flag) // the flag is declared above
	}
	cmd.Flags().BoolVar(&calls, "calls", false, "the file has tool calls instead of definitions")
	return cmd
}

// convertInput reads the file in args, or standard input.
func convertInput(stdin io.Reader, args []string) ([]byte, error) {
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	input, err := readInput(name, stdin, maxConvert)
	switch {
	case err != nil && name != "-":
		return nil, fail(exitUsage, "The file cannot be read: %w", err)
	case err != nil:
		return nil, fail(exitUsage, "The input cannot be read: %w", err)
	case len(input) > maxConvert:
		return nil, fail(exitUsage, "The input is larger than %d MiB; split it.", maxConvert>>20)
	}
	return input, nil
}

// readInput reads a file, or standard input for "-", up to one byte more than most.
func readInput(name string, stdin io.Reader, most int64) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // opened only for reading
		in = file
	}
	return io.ReadAll(io.LimitReader(in, most+1))
}

func convertTools(out, note screen, from, to toolformat.Format, input []byte, calls bool) error {
	tools, ofCalls := input, []byte(nil)
	if calls {
		tools, ofCalls = nil, input
	}
	made, err := toolformat.Convert(from, to, tools, ofCalls)
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	skipped := 0
	text := ""
	for _, n := range made.Notes {
		if n.Kind == toolformat.NoteSkipped {
			skipped++
		}
		text += oneLine(n.Kind+" "+n.Pointer+": "+n.Message) + "\n"
	}
	switch {
	case out.structured():
		err = out.value(converted{string(from), string(to), made.Tools, made.Calls, made.Notes})
	case calls:
		err = out.raw(made.Calls)
	default:
		err = out.raw(made.Tools)
	}
	if err != nil {
		return err
	}
	if !out.structured() {
		if err := note.text(text); err != nil {
			return err
		}
	}
	if skipped > 0 {
		return fail(exitSkipped, "%s could not be converted.", count(skipped, "part"))
	}
	return nil
}
