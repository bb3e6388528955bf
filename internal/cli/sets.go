package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/toolset"
	"github.com/callyard/callyard/pkg/schema"
)

// setItem is a set as the commands read it.
type setItem struct {
	Name       string      `json:"name"`
	Tenant     string      `json:"tenant"`
	Origin     string      `json:"origin"`
	ETag       string      `json:"etag"`
	By         string      `json:"by"`
	Definition toolset.Set `json:"definition"`
	Tools      []struct {
		Name    string `json:"name"`
		Server  string `json:"server"`
		Tool    string `json:"tool"`
		Enabled bool   `json:"enabled"`
		Reason  string `json:"reason"`
		Offline string `json:"offline"`
	} `json:"tools"`
	LeftOut []struct {
		Name  string `json:"name"`
		Tools []struct {
			Server string `json:"server"`
			Tool   string `json:"tool"`
		} `json:"tools"`
	} `json:"left_out"`
}

func setsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sets",
		Short: "List and change sets of tools",
		Long: "sets lists the sets of tools: named selections over all servers, which MCP clients use at /mcp/@NAME. " +
			"`sets show` lists the tools of one, `sets put` makes or changes one, `sets remove` removes one. " +
			"With a key of a tenant other than default, these are the tenant's own sets; those of the installation are listed too.",
		Example: "  callyard sets\n  callyard sets put reading --tools 'files/read_*' --tools 'web/search' --prefix ''\n  callyard sets put reading set.json\n  callyard sets show reading",
		Args:    takes(0, 0),
		RunE:    withClient(listSets),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "show NAME", Short: "Show a set and its tools", Args: takes(1, 1), ValidArgsFunction: completing(setNames), RunE: withClient(showSet)},
		putSetCommand(),
		&cobra.Command{Use: "remove NAME", Aliases: []string{"rm"}, Short: "Remove a set", Args: takes(1, 1), ValidArgsFunction: completing(setNames), RunE: withClient(removeSet)},
	)
	return cmd
}

func readSets(ctx context.Context, c *client) (*list[setItem], error) {
	return readList[setItem](ctx, c, 0, func(int, string) request { return c.api.ListSets })
}

func setNames(ctx context.Context, c *client, _ []string) ([]string, error) {
	all, err := readSets(ctx, c)
	return namesOf(all, err, func(one *setItem) string { return one.Name })
}

func listSets(ctx context.Context, c *client, _ []string) error {
	all, err := readSets(ctx, c)
	if err != nil {
		return err
	}
	header := []string{"SET", "ORIGIN", "BY", "DESCRIPTION"}
	own := slices.ContainsFunc(all.items, func(s setItem) bool { return s.Tenant != "" && s.Tenant != string(schema.DefaultTenant) })
	if own {
		header = slices.Insert(header, 1, "TENANT")
	}
	return all.print(c, "sets", header, func(s *setItem) []cell {
		row := cells(s.Name, s.Origin, s.By, topLine(s.Definition.Description))
		if own {
			row = slices.Insert(row, 1, cells(s.Tenant)...)
		}
		return row
	}, "")
}

func showSet(ctx context.Context, c *client, args []string) error {
	return show(ctx, c, with(c.api.GetSet, args[0]), func(s *setItem) error { return s.write(c) })
}

func (s *setItem) write(c *client) error {
	rows := make([][]cell, 0, len(s.Tools))
	for _, t := range s.Tools {
		row := cells(t.Name, t.Server, t.Tool, "on")
		switch {
		case !t.Enabled:
			row[3] = cell{strings.TrimSpace("off " + t.Reason), red}
		case t.Offline != "":
			row[3] = cell{"offline", red}
		}
		rows = append(rows, row)
	}
	if err := c.out.table([]string{"NAME", "SERVER", "TOOL", "STATE"}, rows); err != nil {
		return err
	}
	for _, clash := range s.LeftOut {
		if err := c.note.text(oneLine(fmt.Sprintf("%d tools are left out, because they would all be named %s; set names.conflict to prefer or rename.", len(clash.Tools), clash.Name)) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// setNow returns a set from the list, which also includes sets that cannot be used at the moment.
// If there is none, it returns the error of GET /sets/{name}.
func setNow(ctx context.Context, c *client, name string) (now setItem, err error) {
	all, err := readSets(ctx, c)
	if err != nil {
		return now, err
	}
	if i := slices.IndexFunc(all.items, func(s setItem) bool { return s.Name == name }); i >= 0 {
		return all.items[i], nil
	}
	_, err = c.report(ctx, with(c.api.GetSet, name), &now)
	return now, err
}

// setFlags define a set without a file.
type setFlags struct {
	tools, exclude                           []string
	description, prefix, separator, conflict string
}

func putSetCommand() *cobra.Command {
	var f setFlags
	cmd := &cobra.Command{
		Use:   "put NAME [FILE]",
		Short: "Create or change a set",
		Long: "put creates a set, or replaces its definition. FILE has the definition as JSON, as in PUT /sets/{name} (- means standard input). " +
			"Without a file, the flags select the tools of the set.",
		Args: takes(1, 2),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.tools, "tools", nil, "tools of the set, as SERVER/TOOL with * and ?; repeatable, in order")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "tools to leave out, as SERVER/TOOL; repeatable")
	flags.StringVar(&f.description, "description", "", "what the set is for")
	flags.StringVar(&f.prefix, "prefix", "{server}", "prefix of tool names; {server} is the server, '' means none")
	flags.StringVar(&f.separator, "separator", "__", "separator between prefix and name")
	flags.StringVar(&f.conflict, "conflict", "error", "tools that would have the same name: error, prefer or rename")
	offer(cmd, "conflict", "error", "prefer", "rename")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		definition, err := untilInterrupt(ctx, func() ([]byte, error) { return f.definition(c.in, args[1:], flags.Changed) })
		if err != nil {
			return err
		}
		return putSet(ctx, c, args[0], bom.Trim(definition))
	})
	return cmd
}

// definition returns the definition to store.
func (f *setFlags) definition(in io.Reader, file []string, given func(flag string) bool) ([]byte, error) {
	if len(file) == 1 {
		for _, flag := range []string{"tools", "exclude", "description", "prefix", "separator", "conflict"} {
			if given(flag) {
				return nil, fail(exitUsage, "Pass either a file or --tools and the other flags: --%s is not used with a file.", flag)
			}
		}
		text, err := readInput(file[0], in, math.MaxInt32)
		if err != nil {
			return nil, fail(exitUsage, "The set cannot be read: %w", err)
		}
		return text, nil
	}
	if len(f.tools) == 0 {
		return nil, fail(exitUsage, "Pass a file with the definition, or --tools 'SERVER/TOOL'.")
	}
	set := toolset.Set{Description: f.description}
	for to, patterns := range map[*[]toolset.Selector][]string{&set.Include: f.tools, &set.Exclude: f.exclude} {
		for _, p := range patterns {
			server, tool, ok := strings.Cut(p, "/")
			switch {
			case !ok && p != "":
				return nil, fail(exitUsage, "%s is not SERVER/TOOL; write '%s/*' for every tool of the server.", strconv.Quote(p), oneLine(p))
			case server == "" || tool == "": // an empty pattern would select everything
				return nil, fail(exitUsage, "%s is not SERVER/TOOL; write '*' for every server or tool, such as 'files/*'.", strconv.Quote(p))
			}
			*to = append(*to, toolset.Selector{Server: server, Tool: tool})
		}
	}
	if given("prefix") || given("separator") || given("conflict") {
		set.Names = &toolset.Naming{Prefix: &f.prefix, Separator: &f.separator, Conflict: toolset.Conflict(f.conflict)}
	}
	return json.Marshal(set)
}

// putSet stores a set and replaces an existing one.
func putSet(ctx context.Context, c *client, name string, definition []byte) error {
	params := &callyard.PutSetParams{}
	now, err := setNow(ctx, c.quiet(), name) // a new set is no refusal
	switch {
	case err == nil && now.ETag != "":
		params.IfMatch = &now.ETag
	case isNotFound(err):
		params.IfNoneMatch = new(callyard.PutSetParamsIfNoneMatch("*"))
	case err != nil:
		return err
	}
	return show(ctx, c, func(ctx context.Context, edit ...callyard.RequestEditorFn) (*http.Response, error) {
		return c.api.PutSetWithBody(ctx, name, params, mediaJSON, bytes.NewReader(definition), edit...)
	}, func(*struct{}) error {
		if _, err := c.report(ctx, with(c.api.GetSet, name), &now); err != nil {
			return err
		}
		return c.out.text(oneLine(fmt.Sprintf("The set %s is stored; it has %s now. MCP clients use it at /mcp/@%s.", name, count(len(now.Tools), "tool"), name)) + "\n")
	})
}

func removeSet(ctx context.Context, c *client, args []string) error {
	now, err := setNow(ctx, c, args[0])
	if err != nil {
		return err
	}
	return show(ctx, c, with2(c.api.RemoveSet, args[0], &callyard.RemoveSetParams{IfMatch: &now.ETag}), func(*struct{}) error {
		return c.out.text(oneLine("The set "+args[0]+" was removed.") + "\n")
	})
}
