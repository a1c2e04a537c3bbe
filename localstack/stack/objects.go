package stack

import (
	"context"

	"pintu/localstack/s3"
)

// startS3 starts the object store. It takes over the working directory of this process until it is closed, so a
// process can have one stack at a time, and paths must be absolute before.
func (s *Stack) startS3(ctx context.Context, dir string) error {
	store, err := s3.Start(context.WithoutCancel(ctx), s3.Config{Dir: dir, AccessKey: AccessKey, SecretKey: SecretKey, Region: Region})
	if err != nil {
		return err
	}
	s.onClose(store.Close)
	s.s3URL = store.URL()
	return nil
}
