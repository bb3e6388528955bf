package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// listingGroups names the commands that list when run without a subcommand. addLists adds the
// subcommand list to each.
var listingGroups = []string{"approvals", "batches", "calls", "permissions", "servers", "sets", "tenants", "tools", "usage", "webhooks", "workers"}

// sameAsGroup marks a command that is equivalent to its parent.
const sameAsGroup = "same-as-group"

// addLists adds `list` and `ls` to every command below root that lists, because people know these
// words from other programs. A group that has its own list command only gets `ls`.
func addLists(root *cobra.Command) {
	for _, group := range root.Commands() {
		own := slices.IndexFunc(group.Commands(), func(c *cobra.Command) bool { return c.Name() == "list" })
		switch {
		case own >= 0:
			c := group.Commands()[own]
			c.Aliases = append(c.Aliases, "ls")
		case slices.Contains(listingGroups, group.Name()):
			group.AddCommand(listOf(group))
		}
	}
}

// listOf returns a command equivalent to the group, with the same flags.
func listOf(group *cobra.Command) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "The same as `callyard " + group.Name() + "`",
		Long: group.Long, Args: takes(0, 0), RunE: group.RunE, Annotations: map[string]string{sameAsGroup: "true"},
	}
	if group.Name() == "tools" { // its argument filters the list; that of calls shows one call
		list.Use, list.Args, list.ValidArgsFunction = "list [SERVER]", group.Args, group.ValidArgsFunction
	}
	list.Flags().AddFlagSet(group.LocalNonPersistentFlags()) // share the flags, because the group's function reads them
	return list
}
