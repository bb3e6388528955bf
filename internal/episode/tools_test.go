package episode

import (
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/pkg/schema"
)

// oneTool is a catalog with one tool.
type oneTool struct{}

func (oneTool) Servers() []catalog.Server {
	return []catalog.Server{{Server: schema.Server{ID: "files"}}}
}

func (oneTool) Tools(schema.ServerID) ([]catalog.Tool, error) {
	t := catalog.Tool{Tool: &schema.Tool{Server: "files", Name: "read", Digest: "a", Raw: json.RawMessage(`{"description":"Reads."}`)}}
	t.Switch.Enabled = true
	return []catalog.Tool{t}, nil
}

func (oneTool) Holders(schema.ServerID) []schema.Worker { return nil }

// Concurrent callers read the tools of an environment while the table is rebuilt without a change.
// The race detector checks this.
func TestEnvironmentToolsAreReadConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Environment{Tools: []string{"files/*"}, Isolation: IsolationSession, FinishTool: "finish", name: "env"}
		m := New(Options{File: &File{Environments: map[string]*Environment{"env": e}}, Catalog: oneTool{}, Log: slog.New(slog.DiscardHandler)})
		defer m.Close()
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for range 5 {
					tools, err := m.Tools(e)
					if err != nil || len(tools) != 2 || tools[0].Name != "read" || tools[1].Name != "finish" {
						t.Errorf("%v %v", tools, err)
					}
					time.Sleep(tableTTL)
				}
			})
		}
		asking.Wait()
	})
}
