package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// node is one value of a file or variable. YAML, JSON and variables all become nodes, so that one
// decoder handles them and each fault has its place.
type node struct {
	kind    yamldoc.Kind
	at      place
	text    string // of a scalar: as written; strings without quotes and escapes
	items   []*node
	members []member
	// loose marks the text of a variable or a flag, whose syntax cannot express number or bool.
	loose bool
	// literal marks a text in which ${…} is not replaced. hidden marks a text that faults must not
	// show.
	literal, hidden bool
}

// member is one key of a map with its value.
type member struct {
	key   string
	at    place
	value *node
}

// get returns the member with that key, or nil.
func (n *node) get(key string) *member {
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

// freeze marks all texts of the tree as literal.
func (n *node) freeze() {
	n.literal = true
	for _, item := range n.items {
		item.freeze()
	}
	for _, m := range n.members {
		m.value.freeze()
	}
}

// duplicates reports the duplicate keys of a map.
func (r *report) duplicates(path string, n *node) {
	seen := make(map[string]place, len(n.members))
	for _, m := range n.members {
		if first, ok := seen[m.key]; ok {
			r.add(m.at, joinName(path, m.key), "the key occurs twice, first in line %d; remove one of them.", first.line)
			continue
		}
		seen[m.key] = m.at
	}
}

// maxDepth limits the nesting, because the parsers recurse.
const maxDepth = 100

// readText reads a file of at most limit bytes. It requires UTF-8 and removes the byte order mark.
// The error is a sentence without the path.
func readText(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, readFault(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, readFault(err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("the file is larger than %s; it is probably not the intended file.", Size(limit))
	case !utf8.Valid(data):
		return nil, errors.New("the file is not UTF-8 text; save it as UTF-8.")
	}
	return []byte(strings.TrimPrefix(string(data), "\ufeff")), nil
}

func readFault(err error) error {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("the file does not exist; correct the path or create it.")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("this user is not allowed to read the file; change its permissions.")
	case errors.As(err, &pathErr):
		return fmt.Errorf("the file cannot be read: %w; correct the path.", pathErr.Err)
	}
	return fmt.Errorf("the file cannot be read: %w.", err)
}
