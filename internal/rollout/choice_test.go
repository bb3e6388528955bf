package rollout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/pkg/schema"
)

// environmentOf returns an environment with the given tasks.
func environmentOf(t *testing.T, tasks string) *episode.Environment {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"env.yaml": "environments:\n  notes:\n    tools: [todo/*]\n    tasks_file: t\n", "t": tasks} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := episode.Load(filepath.Join(dir, "env.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Environments["notes"]
}

func TestResetWithSnapshotRequiresATask(t *testing.T) {
	many := environmentOf(t, "{\"id\":\"a\",\"question\":\"x\"}\n{\"id\":\"b\",\"question\":\"y\"}\n")
	one := environmentOf(t, "{\"id\":\"a\",\"question\":\"x\"}\n")
	index, seed := 1, int64(1)
	for name, x := range map[string]struct {
		env  *episode.Environment
		c    choice
		want string
	}{
		"nothing":       {many, choice{Snapshot: "s"}, ""},
		"a seed":        {many, choice{Snapshot: "s", Seed: &seed}, ""},
		"a split":       {many, choice{Snapshot: "s", Split: "train"}, ""},
		"an index":      {many, choice{Snapshot: "s", Index: &index}, "b"},
		"an id":         {many, choice{Snapshot: "s", TaskID: "b"}, "b"},
		"the only task": {one, choice{Snapshot: "s", Seed: &seed}, "a"},
		"no snapshot":   {many, choice{Seed: &seed}, "b"},
	} {
		task, err := x.c.task(x.env)
		switch {
		case x.want == "" && schema.KindOf(err) != schema.KindInvalidRequest:
			t.Errorf("%s: %+v, %v", name, task, err)
		case x.want != "" && (err != nil || task.ID != x.want):
			t.Errorf("%s: %+v, %v, want %s", name, task, err, x.want)
		}
	}
}
