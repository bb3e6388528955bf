package cli

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// providerList selects tools and the format of a model provider.
type providerList struct {
	format   string
	maxTools int
	budget   int
	strict   bool
	query    string
	server   string
	set      string
}

// providerFormats lists the values of --format.
var providerFormats = []string{"mcp", "openai", "openai-responses", "anthropic", "gemini"}

func (p *providerList) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.format, "format", "", "print the tools in the format of a model provider: openai, openai-responses, anthropic or gemini")
	offer(cmd, "format", providerFormats...)
	cmd.Flags().StringVar(&p.set, "set", "", "with --format: only the tools of this set, under its names")
	cmd.Flags().IntVar(&p.maxTools, "max-tools", 0, "with --format: maximum number of tools")
	cmd.Flags().IntVar(&p.budget, "budget-tokens", 0, "with --format: maximum estimated number of tokens of all tools")
	cmd.Flags().BoolVar(&p.strict, "strict", false, "with --format: OpenAI's strict mode for schemas that support it")
}

// check rejects conflicting flags.
func (p *providerList) check(given func(flag string) bool) error {
	if err := oneOf("format", p.format, append([]string{""}, providerFormats...)...); err != nil {
		return err
	}
	for _, flag := range []string{"set", "max-tools", "budget-tokens", "strict"} {
		if p.format == "" && given(flag) {
			return fail(exitUsage, "--%s needs --format, such as --format openai.", flag)
		}
	}
	if p.maxTools < 0 || p.budget < 0 {
		return fail(exitUsage, "--max-tools and --budget-tokens must not be negative.")
	}
	return nil
}

// providerAnswer holds the members of GET /tools in the format of a provider that are used here.
type providerAnswer struct {
	Tools    json.RawMessage `json:"tools"`
	Count    int             `json:"count"`
	Tokens   int             `json:"tokens"`
	Omitted  int             `json:"omitted"`
	Loosened []struct {
		Name    string `json:"name"`
		Pointer string `json:"pointer"`
		Message string `json:"message"`
	} `json:"loosened"`
	Notes   []string `json:"notes"`
	Unknown []string `json:"unknown"`
}

// listForProvider prints the tools in the format of the provider, and notes on stderr.
func listForProvider(ctx context.Context, c *client, p providerList) error {
	format := callyard.ListToolsParamsFormat(p.format)
	q := callyard.ListToolsParams{
		Format: &format, Server: optional(p.server), Set: optional(p.set), Query: optional(p.query),
		MaxTools: optional(max(int64(p.maxTools), 0)), BudgetTokens: optional(max(int64(p.budget), 0)), Strict: optional(p.strict),
	}
	return show(ctx, c, with(c.api.ListTools, &q), func(answer *providerAnswer) error { return answer.write(c) })
}

func (answer *providerAnswer) write(c *client) error {
	if err := c.out.raw(answer.Tools); err != nil {
		return err
	}
	text := strconv.Itoa(answer.Count) + " tools, about " + strconv.Itoa(answer.Tokens) + " tokens"
	if answer.Omitted > 0 {
		text += "; " + strconv.Itoa(answer.Omitted) + " left out"
	}
	text += ".\n"
	for _, l := range answer.Loosened {
		text += oneLine("Looser than the tool: "+l.Name+" "+l.Pointer+": "+l.Message) + "\n"
	}
	for _, note := range answer.Notes {
		text += oneLine(note) + "\n"
	}
	return c.note.text(text + missingTools(answer.Unknown))
}
