package mcptest

import (
	"encoding/json"
	"fmt"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// serveData answers the requests for resources and prompts. It returns false for any other method.
func (s *server) serveData(m message) bool {
	switch m.Method {
	case mcpwire.MethodListResources:
		s.list(m, "resources", fmt.Sprintf(`{"uri":%q,"name":"greeting","mimeType":"text/plain"}`, ResourceURI))
	case schema.MethodReadResource:
		s.readResource(m)
	case mcpwire.MethodListPrompts:
		s.list(m, "prompts", `{"name":"greet","description":"Greets somebody","arguments":[{"name":"name","required":true}]}`)
	case schema.MethodGetPrompt:
		s.getPrompt(m)
	default:
		return false
	}
	return true
}

func (s *server) readResource(m message) {
	var p struct {
		URI string `json:"uri"`
	}
	_ = json.Unmarshal(m.Params, &p) // an unreadable URI counts as unknown
	if p.URI != ResourceURI {
		s.out.fault(m.ID, rpcFault{code: mcpwire.CodeInvalidParams, message: "Resource not found"})
		return
	}
	contents := fmt.Sprintf(`"contents":[{"uri":%q,"mimeType":"text/plain","text":"good morning"}]}`, ResourceURI)
	if m.modern {
		contents = `"ttlMs":0,"cacheScope":"public",` + contents
	}
	s.out.result(m.ID, stamp("{"+contents, m.modern))
}

func (s *server) getPrompt(m message) {
	var p struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if p.Name != "greet" {
		s.out.fault(m.ID, rpcFault{code: mcpwire.CodeInvalidParams, message: "Unknown prompt"})
		return
	}
	text := quote("Say good morning to " + p.Arguments["name"])
	s.out.result(m.ID, stamp(`{"messages":[{"role":"user","content":{"type":"text","text":`+text+`}}]}`, m.modern))
}
