package servers

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"sync"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

// naming assigns IDs to servers that are added without one. It is safe for concurrent use.
type naming struct {
	mu      sync.Mutex
	pending map[schema.ServerID]json.RawMessage // entries that are being added, by ID
}

// reserve reserves the first free ID of name, name-2, name-3 and so on. Call done once the server
// was added or adding it failed. It returns an error of KindConflict if one of the IDs before it was
// added with the same entry, so that a repeated request does not add a second server.
func (n *naming) reserve(c *catalog.Catalog, name string, entry json.RawMessage) (id schema.ServerID, done func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id = schema.ServerID(name)
	for i := 2; ; i++ {
		same, taken := n.pending[id]
		if !taken {
			if same, taken = c.Operator().Entry(id); !taken {
				_, unknown := c.Server(id)
				taken = unknown == nil
			}
		}
		switch {
		case !taken:
			if n.pending == nil {
				n.pending = make(map[schema.ServerID]json.RawMessage)
			}
			n.pending[id] = entry
			return id, func() { n.release(id) }, nil
		case bytes.Equal(same, entry):
			return "", nil, schema.Errorf(schema.KindConflict, "Server %q was added with this entry. Send an id to add another one, or remove it with DELETE /servers/%s.", id, url.PathEscape(string(id)))
		}
		id = schema.ServerID(name + "-" + strconv.Itoa(i))
	}
}

func (n *naming) release(id schema.ServerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pending, id)
}
