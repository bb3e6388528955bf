package setup

import (
	"strconv"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/settings"
)

// place formats a position in a file. Line 0 means the whole file.
func place(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line) + ":" + strconv.Itoa(column)
}

// members returns the members of each group, or nil if they are unknown.
func members(a settings.Approver, here bool) map[string][]string {
	if a.OIDC.Configured() || len(a.Keys) == 0 && len(a.LocalGroups) == 0 && !here {
		return nil // only the provider knows the members of groups
	}
	groups := make(map[string][]string)
	for _, group := range a.LocalGroups {
		groups[group] = append(groups[group], authn.Local)
	}
	for _, key := range a.Keys {
		person := key.Owner
		if person == "" {
			person = key.Name
		}
		for _, group := range key.Groups {
			groups[group] = append(groups[group], person)
		}
	}
	return groups
}

func names(servers []config.ServerEntry) []string {
	var ids []string
	for i := range servers {
		ids = append(ids, servers[i].ID)
	}
	return ids
}
