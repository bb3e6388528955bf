package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/authn"
)

func keysCommand() *cobra.Command {
	var owner string
	var groups []string
	fresh := &cobra.Command{
		Use:   "new NAME",
		Short: "Create an API key and its entry for the configuration file",
		Long: "new creates an API key and prints it once: Callyard stores only its hash, in the configuration of the front door. " +
			"It does not require a running Callyard.",
		Example: "  callyard keys new ci --owner \"build team\" --group dev",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newKey(screenFor(cmd), keyEntry{Name: args[0], Owner: owner, Groups: groups})
		},
	}
	fresh.Flags().StringVar(&owner, "owner", "", "person or team that owns the key")
	fresh.Flags().StringSliceVar(&groups, "group", nil, "group of the key; repeatable")
	return group("keys", "Make and manage API keys, keys of attached programs, warrant keys and encryption keys", append(issuedKeyCommands(), fresh, attachKeyCommand(), warrantKeyCommand(), encryptionKeysCommand())...)
}

// keyEntry is a key in the format of the configuration.
type keyEntry struct {
	Name   string   `json:"name"`
	Owner  string   `json:"owner,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Hash   string   `json:"hash"`
}

// newKey creates a key and prints it with its configuration entry.
func newKey(out screen, entry keyEntry) error {
	var key string
	key, entry.Hash = authn.Generate()
	if _, err := authn.NewKeys([]authn.Key{{Name: entry.Name, Owner: entry.Owner, Groups: entry.Groups, Hash: entry.Hash}}); err != nil {
		return fail(exitUsage, "%w", err)
	}
	if out.structured() {
		return out.value(struct {
			Key   string   `json:"key"`
			Entry keyEntry `json:"entry"`
		}{key, entry})
	}
	return out.text(out.paint(bold, key) + "\n\n" +
		"This is the API key; it is shown only once. Add its entry to the configuration of the front door:\n\n" + entry.yaml())
}

// yaml formats the entry at its place in the configuration.
func (e *keyEntry) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "front_door:\n  keys:\n    - name: %s\n", yamlText(e.Name))
	if e.Owner != "" {
		fmt.Fprintf(&b, "      owner: %s\n", yamlText(e.Owner))
	}
	if len(e.Groups) > 0 {
		quoted := make([]string, len(e.Groups))
		for i, g := range e.Groups {
			quoted[i] = yamlText(g)
		}
		fmt.Fprintf(&b, "      groups: [%s]\n", strings.Join(quoted, ", "))
	}
	fmt.Fprintf(&b, "      hash: %s\n", yamlText(e.Hash))
	return b.String()
}

// yamlText quotes a text for YAML, which accepts JSON strings. It doubles the $ of ${, which would
// otherwise start an environment variable.
func yamlText(text string) string {
	return string(marshal(strings.ReplaceAll(text, "${", "$${")))
}
