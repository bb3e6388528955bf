package webhook

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ReadSecrets reads the secrets for [Options] from a file: one whsec_… on each line. It ignores
// empty lines and lines that start with #. The error completes a sentence that starts with the name
// of the file, and repeats no secret.
func ReadSecrets(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("contains no secret: write whsec_ and 32 random bytes in base64 on a line")
	}
	if _, fault := newSigner(all); fault != nil {
		return nil, fmt.Errorf("contains no valid secret: %w", fault)
	}
	return all, nil
}
