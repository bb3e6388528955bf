package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/warrant"
)

func warrantKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "warrant NAME",
		Short: "Create a pair of keys that signs and verifies warrants",
		Long: "warrant writes NAME.pem, a private key for the approver or for the front doors, and NAME.pub.pem, its public key for the workers. " +
			"Create one pair for the approver and another for the front doors, so that a stolen front door key cannot forge approvals by people. " +
			"callyard up creates its own. It does not require a running Callyard.",
		Example: "  callyard keys warrant approver\n  callyard keys warrant /etc/callyard/frontdoor",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newWarrantKey(screenFor(cmd), args[0])
		},
	}
}

// newWarrantKey creates a key pair and prints the settings that each half belongs to.
func newWarrantKey(out screen, name string) error {
	if name == "" || strings.HasSuffix(name, "/") {
		return fail(exitUsage, "A name is required: NAME.pem and NAME.pub.pem are written.")
	}
	private, public := name+".pem", name+".pub.pem"
	key := warrant.Generate()
	if err := warrant.Write(key, private, public); err != nil {
		return fail(exitUsage, "%w", err)
	}
	id := warrant.NewSigner(key).KeyID()
	if out.structured() {
		return out.value(struct {
			KeyID   string `json:"key_id"`
			Private string `json:"private_key_file"`
			Public  string `json:"public_key_file"`
		}{id, private, public})
	}
	return out.text(fmt.Sprintf("Key %s\n\n", out.paint(bold, id)) + fmt.Sprintf(
		"The private key is in %s, for the approver or for the front doors:\n\nwarrants:\n  key_file: %s\n\n", private, yamlText(private)) + fmt.Sprintf(
		"The public key is in %s, for the workers: under people_keys for the approver's\nkey, under caller_keys for the front doors' key:\n\nwarrants:\n  people_keys: [%[2]s]     # only the approver's key\n  caller_keys: [%[2]s]     # only the front doors' key\n", public, yamlText(public)))
}
