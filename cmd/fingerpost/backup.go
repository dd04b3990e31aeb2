package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fingerpost/api/client"
	"fingerpost/cmd/fingerpost/cli"
	"fingerpost/configsrc/atomicfile"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/datadir"
)

// backupFlags are the flags of backup.
type backupFlags struct {
	data, ops   string
	remote      bool // ask the server at ops, even if its data is elsewhere
	force, json bool
}

const defaultOpsURL = "http://127.0.0.1:9090"

func newBackup(t cli.Terminal) *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the store",
		Long: "Writes what the store holds at one moment into one file: the mail log and queue, createdAt and updatedAt, " +
			"and\n" +
			"everything derived from the config files. FILE may be - for stdout. Where a server has the store (--data) open, " +
			"its\n" +
			"ops listener (--ops-url) is asked; otherwise the store is read where it lies, and not changed.\n\n" +
			"A backup is as confidential as the config folder and the mail log: the files' text is in it, with sealed values " +
			"and\n" +
			"key hashes, and so is a secret that stands in a file in clear text. The config folder itself is not in it.",
		Args: cli.WantsNamed("FILE"),
		RunE: cli.Interruptible(func(cmd *cobra.Command, args []string) error {
			f.remote = cmd.Flags().Changed("ops-url") && !cmd.Flags().Changed("data")
			return backup(cmd.Context(), t, args[0], f)
		}),
	}
	cmd.Flags().StringVar(&f.data, "data", ".fingerpost", "folder of the store")
	cmd.Flags().StringVar(&f.ops, "ops-url", defaultOpsURL,
		"address of the server's ops listener; without --data, its store is backed up")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace FILE")
	cmd.Flags().BoolVar(&f.json, "json", false, "print what is in the backup as JSON")
	return cmd
}

func backup(ctx context.Context, t cli.Terminal, file string, f backupFlags) error {
	if file == "-" {
		if f.json {
			return cli.Usage("--json and - both mean stdout")
		}
		m, err := backupTo(ctx, t.Out, f)
		if err == nil {
			fmt.Fprintln(t.Err, summary(m))
		}
		return err
	}
	if err := free(file, f.force); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".fingerpost-backup-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	if err := out.Chmod(0o600); err != nil { // the umask may have removed more
		return err
	}
	m, err := backupTo(ctx, out, f)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := moveIn(out.Name(), file, f.force); err != nil {
		return err
	}
	if f.json {
		return cli.PrintJSON(t.Out, m)
	}
	fmt.Fprintf(t.Out, "%s: %s\n", file, summary(m))
	return nil
}

// free returns an error if the file exists, unless force is set.
func free(file string, force bool) error {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return cli.No("%s is there and is no regular file", file)
	case !force:
		return cli.No("%s is there already: another name, or --force to replace it", file)
	}
	return nil
}

// moveIn gives the finished archive its name, durably. It replaces a file only with force.
func moveIn(temp, file string, force bool) error {
	// Unlike a rename, a link fails if the name is taken. Some file systems have none.
	if force || os.Link(temp, file) != nil {
		if err := free(file, force); err != nil {
			return err
		}
		if err := os.Rename(temp, file); err != nil {
			return err
		}
	}
	return atomicfile.SyncFolder(atomicfile.OSDisk{}, filepath.Dir(file))
}

// backupTo copies an archive to out, and reads it back on the way.
func backupTo(ctx context.Context, out io.Writer, f backupFlags) (*datadir.Manifest, error) {
	read, write := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		err := writeBackup(ctx, io.MultiWriter(out, write), f)
		write.CloseWithError(err) // nil is the end
		failed <- err
	}()
	m, err := datadir.CheckArchive(untilDone{ctx, read})
	read.CloseWithError(err)
	first := <-failed
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted; nothing was written")
	case first != nil && !errors.Is(first, datadir.ErrArchive):
		return nil, first // what the reader reported came after it
	}
	return m, err
}

// writeBackup has the archive written by the server that has the store open, else by this process.
func writeBackup(ctx context.Context, w io.Writer, f backupFlags) error {
	if f.remote {
		return fetchBackup(ctx, w, f.ops, 0)
	}
	err := datadir.BackupDir(w, f.data, time.Now())
	pid, held := datadir.HeldBy(err)
	if !held {
		return err
	}
	if err := fetchBackup(ctx, w, f.ops, pid); err != nil {
		return fmt.Errorf("process %d has %s open: %w", pid, f.data, err)
	}
	return nil
}

// fetchBackup asks a running server. pid is the process that must answer, 0 for any.
func fetchBackup(ctx context.Context, w io.Writer, ops string, pid int) error {
	if _, err := url.Parse(strings.TrimSuffix(ops, "/") + "/backup"); err != nil {
		return cli.Usage("--ops-url: %v", err)
	}
	return client.Backup(ctx, w, ops, pid)
}

// summary describes a backup in one line.
func summary(m *datadir.Manifest) string {
	return fmt.Sprintf("generation %d of %s, %s, %s, %d kB in %s", m.Generation, m.CreatedAt.Format(time.RFC3339),
		catalog.Count(m.Projects, "project"), catalog.Count(m.Domains, "domain"), (m.Bytes()+999)/1000,
		catalog.Count(len(m.Files), "file"))
}
