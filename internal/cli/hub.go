package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/hub"
)

func hubCommand() *cobra.Command {
	list := hubListCommand()
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "List the built-in servers, or show one of them",
		Long: "hub shows the servers that every worker has built in. An entry {\"builtin\": \"NAME\"} in the servers file serves one.\n" +
			"`callyard up` without a servers file serves those that need no setting.",
		Args: takes(0, 0), RunE: list.RunE,
	}
	cmd.AddCommand(list, hubShowCommand())
	return cmd
}

func hubListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the built-in servers", Args: takes(0, 0),
		Example: "  callyard hub list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := screenFor(cmd)
			all := hub.List()
			if out.structured() {
				shown := make([]hubShown, len(all))
				for i := range all {
					shown[i] = showHub(&all[i])
				}
				return out.value(shown)
			}
			rows := make([][]cell, len(all))
			for i, e := range all {
				rows[i] = cells(e.Name, decimal(len(e.Tools)), strings.Join(e.Needs, ", "), e.Description)
			}
			return out.table([]string{"NAME", "TOOLS", "NEEDS", "DESCRIPTION"}, rows)
		},
	}
}

// hubShown is the JSON form of a built-in server.
type hubShown struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Needs       []string `json:"needs"`
	Tools       []string `json:"tools"`
}

func showHub(e *hub.Entry) hubShown {
	return hubShown{e.Name, e.Title, e.Description, append([]string{}, e.Needs...), e.Tools}
}

func hubShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a built-in server and its entry for the servers file", Args: takes(1, 1),
		Example:           "  callyard hub show files",
		ValidArgsFunction: cobra.FixedCompletions(hubNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := screenFor(cmd)
			i := slices.Index(hubNames(), args[0])
			if i < 0 {
				return fail(exitUsage, "There is no built-in server %q: `callyard hub list` lists them%s", oneLine(args[0]), orPoint(didYouMean(args[0], hubNames())))
			}
			e := hub.List()[i]
			if out.structured() {
				return out.value(showHub(&e))
			}
			return out.text(fmt.Sprintf("%s: %s\n\nTools: %s\n\nEntry for the servers file:\n  %s\n", e.Title, e.Description, strings.Join(e.Tools, ", "), hubEntry(&e)))
		},
	}
}

// hubNames returns the names of the built-in servers, in the order of [hub.List].
func hubNames() (names []string) {
	for _, e := range hub.List() {
		names = append(names, e.Name)
	}
	return names
}

// hubEntry returns an example of an entry, with values for the required settings.
func hubEntry(e *hub.Entry) string {
	b := fmt.Sprintf(`"%s": {"builtin": "%s"`, e.Name, e.Name)
	for _, need := range e.Needs {
		switch need {
		case "roots":
			b += `, "roots": ["/srv/data", "/srv/out:rw"]`
		case "engine":
			b += `, "engine": "searxng", "engine_url": "https://search.example.com"`
		}
	}
	return b + "}"
}

// safeEntries returns the built-in servers that need no setting.
func safeEntries() []config.ServerEntry {
	var out []config.ServerEntry
	for _, e := range hub.List() {
		if e.Safe {
			out = append(out, config.ServerEntry{ID: e.Name, Type: config.TypeBuiltin, Builtin: &config.Builtin{Name: e.Name}})
		}
	}
	return out
}
