package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ParseServer parses one entry of a servers file that comes from another source, such as the API.
// It does not replace variables, because the author of the entry must not read the environment of
// this process. The error is a *Faults.
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
