package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// listingGroups are the commands that list when they have no further word. Each of them also
// lists with the word list.
var listingGroups = []string{"approvals", "batches", "calls", "permissions", "servers", "sets", "tenants", "tools", "usage", "workers"}

// sameAsGroup marks a command that does what the command above it does.
const sameAsGroup = "same-as-group"

// addLists lets people type `list` or `ls` at every command below root that lists, because they
// know these words from other programs. A group with a list command of its own gets `ls` alone.
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

// listOf is a command that does what the group does, with the same flags.
func listOf(group *cobra.Command) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "The same as `callyard " + group.Name() + "`",
		Long: group.Long, Args: takes(0, 0), RunE: group.RunE, Annotations: map[string]string{sameAsGroup: "true"},
	}
	if group.Name() == "tools" { // its argument chooses what is listed; that of calls shows one
		list.Use, list.Args, list.ValidArgsFunction = "list [SERVER]", group.Args, group.ValidArgsFunction
	}
	list.Flags().AddFlagSet(group.LocalNonPersistentFlags()) // the same flags: the group's function reads them
	return list
}
