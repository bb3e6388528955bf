package servers

import (
	"encoding/json"
	"net/http"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/pkg/schema"
)

// sendDefinitions answers with one list of a server's definitions.
func sendDefinitions(x *httpapi.Exchange, c *catalog.Catalog, r *http.Request, name string, list func(*schema.Definitions) []json.RawMessage) error {
	d, err := x.Operated(c).Definitions(schema.ServerID(r.PathValue("id")))
	if err != nil {
		return err
	}
	sendList(x, name, list(d))
	return nil
}

// sendList answers with the server's definitions, byte for byte.
func sendList(x *httpapi.Exchange, name string, items []json.RawMessage) {
	size := len(name) + 8
	for _, item := range items {
		size += len(item) + 1
	}
	body := make([]byte, 0, size)
	body = append(append(append(body, `{"`...), name...), `":[`...)
	for i, item := range items {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item...)
	}
	x.SendJSON(http.StatusOK, append(body, "]}"...))
}
