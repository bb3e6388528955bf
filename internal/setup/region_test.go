package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/internal/settings"
)

func TestRegionIsAddedToWorkerLabels(t *testing.T) {
	for _, c := range []struct {
		region     string
		have, want map[string]string
	}{
		{"", map[string]string{"zone": "a"}, map[string]string{"zone": "a"}},
		{"east", nil, map[string]string{"region": "east"}},
		{"east", map[string]string{"zone": "a"}, map[string]string{"zone": "a", "region": "east"}},
		{"east", map[string]string{"region": "west"}, map[string]string{"region": "west"}},
	} {
		config := Config{File: settings.Defaults()}
		config.Region, config.Worker.Labels = c.region, c.have
		config.labelRegion()
		if diff := cmp.Diff(c.want, config.Worker.Labels); diff != "" {
			t.Errorf("region %q with labels %v (-want +got):\n%s", c.region, c.have, diff)
		}
	}
}
