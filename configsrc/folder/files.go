package folder

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// ConfigFiles lists the config files at and below the paths, for a command that takes them one by one. A file that is
// named itself counts whatever its name is.
func ConfigFiles(paths []string) (files []string, err error) {
	for _, p := range paths {
		err := filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			base := d.Name()
			if name != p && strings.HasPrefix(base, ".") {
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			if d.Type().IsRegular() && (name == p || strings.HasSuffix(base, ".hcl")) {
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
