package upstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callyard/callyard/internal/upstream/oauth"
)

// TestRefusedScopesAreNotRequestedAgain has a server that names scopes that nobody
// gets, which must not cost the token that works.
func TestRefusedScopesAreNotRequestedAgain(t *testing.T) {
	var last []string
	s := tokens{scopes: []string{"read"}, fetch: func(_ context.Context, scopes []string) (*oauth.Token, error) {
		if last = scopes; len(scopes) > 1 {
			return nil, errors.New("refused")
		}
		return &oauth.Token{Access: "narrow"}, nil
	}}
	if done, err := s.widen(t.Context(), []string{"admin"}); done || err == nil || fmt.Sprint(last) != "[read admin]" {
		t.Errorf("%v, %v, asked for %v", done, err, last)
	}
	if token, err := s.get(t.Context()); err != nil || token.Access != "narrow" {
		t.Errorf("after that: %v", err)
	}
}

func TestScopesAreBounded(t *testing.T) {
	most := 0
	s := tokens{fetch: func(_ context.Context, scopes []string) (*oauth.Token, error) {
		most = max(most, len(scopes))
		return &oauth.Token{Access: "x"}, nil
	}}
	for i := range 2 * mostScopes {
		if _, err := s.widen(t.Context(), []string{fmt.Sprint("s", 2*i), fmt.Sprint("s", 2*i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if most != mostScopes {
		t.Errorf("%d scopes were asked for", most)
	}
}

func TestALateNarrowTokenDoesNotReplaceAWideOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokens{fetch: func(_ context.Context, scopes []string) (*oauth.Token, error) {
			if len(scopes) == 0 {
				time.Sleep(time.Second)
			}
			return &oauth.Token{Access: fmt.Sprint(scopes)}, nil
		}}
		go func() { _, _ = s.get(t.Context()) }()
		synctest.Wait()
		if done, err := s.widen(t.Context(), []string{"write"}); !done || err != nil {
			t.Fatal(done, err)
		}
		time.Sleep(2 * time.Second)
		if token, err := s.get(t.Context()); err != nil || token.Access != "[write]" {
			t.Errorf("%v, %v", token.Access, err)
		}
	})
}
