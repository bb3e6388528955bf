package sandbox

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeEngineWithStuckContainer is an engine that lists a container for ever that it does not know: what
// moby 20.10 does with one that is removed twice at once. It counts removals.
func fakeEngineWithStuckContainer(t *testing.T, owner string) (host string, removals *int) {
	t.Helper()
	removals = new(int)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"):
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			w.Write([]byte(`[{"Id":"77","Names":null,"State":"dead","Labels":{"` + labelOwner + `":"` + owner + `"}}]`))
		case r.Method == http.MethodDelete:
			*removals++
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"message":"No such container: 77"}`))
		default:
			t.Errorf("it was asked %s %s", r.Method, r.URL)
		}
	}))
	path := t.TempDir() + "/e.sock"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return "unix://" + path, removals
}

func TestContainerThatIsListedButGoneCountsAsRemoved(t *testing.T) {
	owner := owner(t)
	host, removals := fakeEngineWithStuckContainer(t, owner)
	c := clientAt(t, host)
	defer c.Close()
	var log strings.Builder
	e := &Engine{o: Options{Owner: owner}, client: c, log: slog.New(slog.NewTextHandler(&log, nil))}

	var marks map[string]mark
	for range 6 {
		var err error
		if marks, err = e.scan(t.Context(), nil, marks); err != nil {
			t.Fatal(err)
		}
	}
	if *removals != 1 || log.Len() > 0 {
		t.Errorf("six looks asked for %d removals and said %q", *removals, log.String())
	}
	if n, err := sweepOwner(t.Context(), c, owner); n != 0 || err != nil {
		t.Errorf("%d are left of the owner, %v", n, err)
	}
}

func TestJanitorKeepsContainersThatAreBeingCreated(t *testing.T) {
	e := engine(t)
	s := spec(t, e)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // an engine that is slow gives it as many looks while it makes one
		defer close(ended)
		var marks map[string]mark
		for {
			select {
			case <-over:
				return
			default:
			}
			var err error
			if marks, err = e.scan(t.Context(), nil, marks); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 10 {
		c, err := e.Start(t.Context(), s)
		if err != nil {
			t.Errorf("a start beside the janitor: %v", err)
			continue
		}
		opened(t, c)
		c.Stop(0)
	}
	close(over)
	<-ended
}
