package sandbox

import (
	"context"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/callyard/callyard/internal/launch"
)

// Pin looks up the image of a Spec and returns the Spec bound to its id, so that this image is run even
// if its name changes. It also checks that the engine has the runtime. It pulls nothing. The error is a
// *schema.Error.
func (e *Engine) Pin(ctx context.Context, s Spec) (Spec, error) {
	if rt := s.host.Runtime; rt != "" && !slices.Contains(e.about.Runtimes, rt) {
		return s, launch.Failed("Server %q must run in a container with the runtime %q, which the engine at %s does not have (it has %s); install it there, or remove \"runtime\".",
			s.Server, rt, e.about.Host, strings.Join(e.about.Runtimes, ", "))
	}
	rt := s.host.Runtime
	if rt == "" {
		rt = e.about.Default
	}
	if slices.Contains(e.about.ignoreLimits, rt) {
		return s, launch.Failed("The runtime %q of the engine at %s is started with --ignore-cgroups, so the limits of the server %q would not hold; remove that option there.", rt, e.about.Host, s.Server)
	}
	ctx, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	image, err := e.client.ImageInspect(ctx, s.Image)
	switch {
	case cerrdefs.IsNotFound(err):
		return s, launch.Failed("Server %q must run in a container of the image %q, which the engine at %s does not have; load or build it there (images are never pulled automatically). The server is not run without a container.", s.Server, s.Image, e.about.Host)
	case err != nil:
		return s, unreachable(e.about.Host, err)
	case image.ID == "":
		return s, launch.Failed("The engine at %s reports no id for the image %q.", e.about.Host, s.Image)
	case image.Os != "" && image.Os != "linux":
		return s, launch.Failed("The image %q of the server %q is for %s; a sandbox requires Linux.", s.Image, s.Server, image.Os)
	}
	s.imageID = image.ID
	s.host.Tmpfs = maps.Clone(s.host.Tmpfs)
	if image.Config != nil {
		if len(s.config.Entrypoint) == 0 && len(image.Config.Entrypoint) == 0 && len(s.config.Cmd) == 0 && len(image.Config.Cmd) == 0 {
			return s, launch.Failed("The image %q of server %q has no command or entrypoint; add \"command\" to the docker section.", s.Image, s.Server)
		}
		// A volume that the image declares would be on the host's disk.
		for _, target := range slices.Sorted(maps.Keys(image.Config.Volumes)) {
			if !s.mounts(target) {
				s.host.Tmpfs[target] = tmpfs(DefaultTmpfs)
			}
		}
	}
	if !s.egress.Empty() {
		if err := e.pinForwarder(ctx, &s); err != nil {
			return s, err
		}
	}
	s.settings = append(slices.Clone(s.settings), Setting{"image_id", s.imageID, configured})
	for _, target := range slices.Sorted(maps.Keys(s.host.Tmpfs)) {
		if !slices.ContainsFunc(s.settings, func(line Setting) bool { return line.Key == "tmpfs" && strings.HasPrefix(line.Value, target+" ") }) {
			s.settings = append(s.settings, Setting{"tmpfs", target + " " + s.host.Tmpfs[target] + " (instead of a volume of the image)", byDefault})
		}
	}
	e.log.Info("image found", "server", s.Server, "image", s.Image, "id", s.imageID)
	return s, nil
}

// Check returns the reason why no container of a pinned Spec can start now: the engine does not
// answer, or no longer has the image. It starts nothing. The error is a *schema.Error.
func (e *Engine) Check(ctx context.Context, s Spec) error {
	ctx, done := context.WithTimeout(ctx, openTimeout)
	defer done()
	if s.forwarder != nil {
		if err := e.Check(ctx, *s.forwarder); err != nil {
			return err
		}
	}
	_, err := e.client.ImageInspect(ctx, s.imageID)
	switch {
	case cerrdefs.IsNotFound(err):
		return launch.Failed("The engine at %s no longer has the image %q of server %q; load it there and restart the server with `callyard servers restart %s`. The server is not run without a container.", e.about.Host, s.Image, s.Server, s.Server)
	case err != nil:
		return unreachable(e.about.Host, err)
	}
	return nil
}

func (s *Spec) mounts(target string) bool {
	if _, ok := s.host.Tmpfs[target]; ok {
		return true
	}
	for _, m := range s.host.Mounts {
		if m.Target == target {
			return true
		}
	}
	return false
}
