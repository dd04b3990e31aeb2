package gitrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"fingerpost/resolver/catalog"
)

// The service commits a file's bytes as they are. A filter of git's (git-crypt, transcrypt, LFS) changes them on the
// way into the history, to keep a secret or a size: a file that the service writes would be there in plain text.

// refuseFilter returns CONFIG_READ_ONLY if the attributes name a filter for a path below the config folder. It may be
// called from any goroutine.
func (r *Repo) refuseFilter(ctx context.Context, path string) error {
	filter, err := r.attributes.FilterOf(ctx, r.prefix+path)
	if err != nil {
		return unavailable(fmt.Errorf("the git attributes of %s cannot be read: %w", path, err))
	}
	if filter == "" {
		return nil
	}
	return &catalog.Error{Code: catalog.CodeReadOnly, Message: fmt.Sprintf("%s is under the git filter %q, and the API "+
		"would commit it as it is, without the filter; change the file in the repository, or take it out of the filter "+
		"(-filter in .gitattributes)", path, filter)}
}

// refuseFilters is refuseFilter for all files of a write that are not removed.
func (r *Repo) refuseFilters(ctx context.Context, w *catalog.FileWrite) error {
	for _, f := range w.Files {
		if f.After == nil {
			continue
		}
		if err := r.refuseFilter(ctx, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// filtered says which files of the config folder are under a filter, "" if none is.
func (r *Repo) filtered(ctx context.Context) (string, error) {
	fresh := r.prefix + "fingerpost-check.hcl"
	found, err := r.attributes.Filters(ctx, r.prefix, fresh)
	if err != nil || len(found) == 0 {
		return "", err
	}
	first, what := slices.Sorted(maps.Keys(found))[0], ""
	switch n := len(found); {
	case first == fresh && n == 1:
		what = "new files"
	case n == 1:
		what = first
	default:
		what = fmt.Sprintf("%s and %d more files", first, n-1)
	}
	return fmt.Sprintf("the git filter %q is set for %s, and writes to files under a filter are refused: the service "+
		"would commit them without it; take them out of the filter (-filter in .gitattributes)", found[first], what), nil
}

// Filtered says which files of the config folder are under a filter of git, to which the API cannot write; "" if none
// is. Of o it needs what Check does.
func Filtered(ctx context.Context, o Options) (string, error) {
	r, err := checked(ctx, o)
	if err != nil {
		return "", err
	}
	r.attributes = r.git.Attributes(ctx)
	return r.filtered(ctx)
}
