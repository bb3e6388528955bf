package e2e

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two instances of a third-party server list the same URIs.
func TestResourcesWithEqualURIsAreReadByBothProtocolEras(t *testing.T) {
	up := startUp(t, setup{servers: serversFile(t, map[string]entry{"left": fromNPM("everything", "stdio"), "right": fromNPM("everything", "stdio")}), env: []string{quickStop}})
	up.waitServers(t, 1, "left", "right")
	for _, era := range []string{modern, legacy} {
		t.Run(era, func(t *testing.T) {
			s := up.mcpClient(t, "/mcp", era, nil)
			list, err := s.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			own := map[string]string{} // maps URIs of right to those of left
			for _, r := range list.Resources {
				if rest, ok := strings.CutPrefix(r.URI, "callyard:left:"); ok {
					own["callyard:right:"+rest] = r.URI
				}
			}
			if len(own) == 0 {
				t.Fatalf("no URI is shared: %d resources", len(list.Resources))
			}
			for right, left := range own {
				for _, uri := range []string{left, right} {
					res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
					if err != nil || len(res.Contents) == 0 || res.Contents[0].URI != uri {
						t.Fatalf("%s: %+v, %v", uri, res, err)
					}
				}
				shared := strings.TrimPrefix(left, "callyard:left:")
				if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: shared}); err == nil || !strings.Contains(err.Error(), left) || !strings.Contains(err.Error(), right) {
					t.Errorf("%s: %v", shared, err)
				}
				break
			}
		})
	}
}
