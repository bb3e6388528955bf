package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
)

// completeWait limits the time to fetch completions, because a person waits. Tests raise it.
var completeWait = time.Second

// completeMost is the number of ids that are offered, the newest first.
const completeMost = 100

// completions returns the completions of the next argument after args. A completion may have a
// description after a tab. On error, nothing is offered.
type completions func(ctx context.Context, c *client, args []string) ([]string, error)

// completing returns a completion function with a source of words for each position. The words are
// fetched from the Callyard that the command line and the environment select.
func completing(places ...completions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(places) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, places[len(args)], args, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// completingFlag is [completing] for the value of a flag.
func completingFlag(cmd *cobra.Command, flag string, give completions) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, give, args, toComplete), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // no such flag: a bug
	}
}

// completeTools completes the value of a flag with the tools of the server that the flag "server"
// selects, or of all servers.
func completeTools(cmd *cobra.Command, flag string) {
	completingFlag(cmd, flag, func(ctx context.Context, c *client, _ []string) ([]string, error) {
		names, err := toolNames(ctx, c, []string{textFlag(cmd, "server")})
		return slices.Compact(names), err
	})
}

// offer completes the value of a flag with fixed words.
func offer(cmd *cobra.Command, flag string, fixed ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(fixed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // no such flag: a bug
	}
}

func complete(cmd *cobra.Command, give completions, args []string, toComplete string) (found []string) {
	ask := func(ctx context.Context, c *client, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, completeWait)
		defer cancel()
		all, err := give(ctx, c.quiet(), args)
		for _, word := range all {
			if name, _, _ := strings.Cut(word, "\t"); strings.HasPrefix(name, toComplete) && oneLine(name) == name && !strings.Contains(name, " ") {
				found = append(found, strings.ReplaceAll(word, "\n", " "))
			}
		}
		return err
	}
	with := withClient
	if asksApprover(cmd) {
		with = withApprover
	}
	if err := with(ask)(cmd, args); err != nil {
		// Printed text would end up in the command line.
		cobra.CompDebugln(err.Error(), false)
	}
	return found
}

func serverIDs(ctx context.Context, c *client, _ []string) (ids []string, err error) {
	var list callyard.ServerList
	if _, err := c.report(ctx, c.api.ListServers, &list); err != nil {
		return nil, err
	}
	for i := range list.Servers {
		ids = append(ids, described(list.Servers[i].ID, readiness(string(list.Servers[i].InitializationState))))
	}
	return ids, nil
}

// toolNames returns the tools of the server in args.
func toolNames(ctx context.Context, c *client, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	tools, err := readTools(ctx, c, args[0])
	if err != nil {
		return nil, err
	}
	for _, t := range tools.items {
		names = append(names, described(t.Name, topLine(cmp.Or(t.def.Description, t.def.Title))))
	}
	return names, nil
}

// argumentNames returns the arguments of the tool in args, as name=.
func argumentNames(ctx context.Context, c *client, args []string) (names []string, err error) {
	if len(args) < 2 {
		return nil, nil
	}
	tools, err := readTools(ctx, c, args[0])
	if err != nil {
		return nil, err
	}
	for _, t := range tools.items {
		if t.Name != args[1] {
			continue
		}
		var input struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		}
		if json.Unmarshal(t.def.Input, &input) != nil {
			return nil, nil
		}
		for name, p := range input.Properties {
			names = append(names, described(name+"=", p.Description))
		}
	}
	return names, nil
}

func callIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	return ids(ctx, c, with(c.api.ListCalls, &callyard.ListCallsParams{Limit: new(completeMost)}))
}

// openCallIDs returns the ids of calls that have not ended or whose outcome is unknown.
func openCallIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	return ids(ctx, c, with(c.api.ListCalls, &callyard.ListCallsParams{Limit: new(completeMost), State: []callyard.ListCallsParamsState{
		callyard.ListCallsParamsStateHeld, callyard.ListCallsParamsStateQueued, callyard.ListCallsParamsStateRunning, callyard.ListCallsParamsStateUnknown, callyard.ListCallsParamsStateFailed,
	}}))
}

func batchIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	return ids(ctx, c, with(c.api.ListBatches, &callyard.ListBatchesParams{Limit: new(completeMost)}))
}

func approvalIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	return ids(ctx, c, c.other(http.MethodGet, "/approvals", nil))
}

func pendingIDs(ctx context.Context, c *client, _ []string) ([]string, error) {
	return ids(ctx, c, c.other(http.MethodGet, "/approvals?state=pending", nil))
}

func permissionIDs(ctx context.Context, c *client, _ []string) (found []string, err error) {
	all, err := readPermissions(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, p := range all.items {
		if p.State == "good" {
			found = append(found, described(p.ID, p.Server+" "+p.Tool+" for "+p.Requester.Name))
		}
	}
	return found, nil
}

// ids returns the ids on the first page of a list, each described by its state and tool.
func ids(ctx context.Context, c *client, q request) (found []string, err error) {
	page, err := readList[struct{ ID, State, Server, Tool string }](ctx, c, 1, func(int, string) request { return q })
	if err != nil {
		return nil, err
	}
	for _, item := range page.items {
		found = append(found, described(item.ID, item.State+" "+item.Server+" "+item.Tool))
	}
	return found, nil
}

// described appends the description that the shell shows after a word.
func described(word, text string) string {
	if text = oneLine(text); text == "" {
		return word
	}
	return word + "\t" + shorten(text, 60)
}
