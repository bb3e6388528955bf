package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ParseServer reads one entry of a servers file that came from elsewhere, over
// the API for instance. Variables in it are not expanded: whoever wrote it must
// not read this process's environment. The error is a *Faults.
func ParseServer(id string, entry []byte) (ServerEntry, error) {
	name, err := json.Marshal(id)
	if err != nil {
		return ServerEntry{}, fmt.Errorf("config: the id cannot be written as JSON: %w", err)
	}
	var file bytes.Buffer
	file.WriteString(`{"mcpServers":{`)
	file.Write(name)
	file.WriteByte(':')
	file.Write(entry)
	file.WriteString("}}")
	r := newServerReader("", nil)
	r.file("the request", file.Bytes())
	if err := r.faults.err(); err != nil {
		return ServerEntry{}, err
	}
	if len(r.drafts) != 1 || r.drafts[0].disabled {
		return ServerEntry{}, fmt.Errorf("config: the request must contain exactly one enabled server")
	}
	e := r.finish(r.drafts[0])
	return e, r.faults.err()
}
