package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
)

func attachKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "attach SERVER",
		Short: "Create a key with which programs attach to a server",
		Long: "attach creates a key for the programs that serve SERVER by attaching to a worker, and prints it once: Callyard stores only its hash, in the entry of the server. " +
			"The key can only attach programs to this server. It does not require a running Callyard.",
		Example: "  callyard keys attach prices",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newAttachKey(screenFor(cmd), args[0])
		},
	}
}

// attachEntry is the entry of a server that programs attach to.
type attachEntry struct {
	Attach    bool     `json:"attach"`
	Keys      []string `json:"attach_keys"`
	RiskLevel int      `json:"riskLevel"`
}

// newAttachKey creates a key and prints it with the entry of its server.
func newAttachKey(out screen, server string) error {
	if fault := config.ServerNameFault(server); fault != "" {
		return fail(exitUsage, "The server name %q %s", server, fault)
	}
	key, hash := authn.Generate()
	entry := attachEntry{Attach: true, Keys: []string{hash}, RiskLevel: 2}
	if out.structured() {
		return out.value(struct {
			Key   string                 `json:"key"`
			Entry map[string]attachEntry `json:"entry"`
		}{key, map[string]attachEntry{server: entry}})
	}
	return out.text(out.paint(bold, key) + "\n\n" +
		"This is the key for attaching; it is shown only once. Add the server to mcpServers in the servers file of\n" +
		"the worker, with the risk level that its tools have, or add the hash to the attach_keys of its entry:\n\n" +
		fmt.Sprintf("%s: %s\n", marshal(server), marshal(entry)))
}
