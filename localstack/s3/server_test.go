package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const bucket = "pintu-test"

// store is a running server with a versioned bucket, reached directly or through a proxy that keeps the Host.
type store struct {
	*testing.T
	*awss3.Client
	http    *http.Client
	chunked atomic.Int64 // requests in aws-chunked encoding that the proxy saw
}

// eachWay runs a check directly, behind an http proxy as a stack puts it there, and behind one with TLS, where the SDK
// streams bodies in aws-chunked encoding with trailing checksums.
func eachWay(t *testing.T, check func(*store)) {
	t.Helper()
	for _, way := range []string{"direct", "proxy", "tls proxy"} {
		t.Run(way, func(t *testing.T) {
			server := start(t, Config{})
			s := &store{T: t, http: http.DefaultClient}
			endpoint := server.URL()
			if way != "direct" {
				proxy := httptest.NewUnstartedServer(s.proxyTo(server.URL()))
				if way == "proxy" {
					proxy.Start()
				} else {
					proxy.StartTLS()
				}
				t.Cleanup(proxy.Close)
				s.http, endpoint = proxy.Client(), proxy.URL
			}
			s.Client = newClient(endpoint, s.http, "test", "testtest")
			s.createBucket()
			check(s)
		})
	}
}

func newClient(endpoint string, h *http.Client, accessKey, secretKey string) *awss3.Client {
	return awss3.New(awss3.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true, HTTPClient: h, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
		// What config.LoadDefaultConfig sets.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	})
}

func start(t *testing.T, c Config) *Server {
	t.Helper()
	c.AccessKey, c.SecretKey = "test", "testtest"
	server, err := Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func (s *store) proxyTo(target string) http.Handler {
	u, err := url.Parse(target)
	if err != nil {
		s.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.Out.Host = r.In.Host // the signature covers it
		if strings.Contains(r.In.Header.Get("Content-Encoding"), "aws-chunked") {
			s.chunked.Add(1)
		}
	}}
}

func (s *store) createBucket() {
	s.Helper()
	if _, err := s.CreateBucket(s.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		s.Fatal(err)
	}
	_, err := s.PutBucketVersioning(s.Context(), &awss3.PutBucketVersioningInput{Bucket: aws.String(bucket),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	if err != nil {
		s.Fatal(err)
	}
}

// put stores an object and returns its version.
func (s *store) put(key, body string) string {
	s.Helper()
	out, err := s.PutObject(s.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		s.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

func (s *store) head(key string) (*awss3.HeadObjectOutput, error) {
	return s.HeadObject(s.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucket), Key: &key, ChecksumMode: types.ChecksumModeEnabled})
}

// get gives an object, or a range or version of it.
func (s *store) get(in awss3.GetObjectInput) string {
	s.Helper()
	in.Bucket = aws.String(bucket)
	out, err := s.GetObject(s.Context(), &in)
	if err != nil {
		s.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(b)
}

// do sends a request and gives the status, the error code if there is one, and the rest.
func (s *store) do(r *http.Request) (int, string, *http.Response, string) {
	s.Helper()
	res, err := s.http.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	var e struct{ Code string }
	if res.StatusCode >= 300 {
		xml.Unmarshal(body, &e) // a body without a code leaves it empty
	}
	return res.StatusCode, e.Code, res, string(body)
}

// ago signs as of an earlier time.
type ago time.Duration

func (a ago) PresignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) (string, http.Header, error) {
	plain := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true } // S3 alone signs the path as it is sent
	return v4.NewSigner(plain).PresignHTTP(ctx, c, r, hash, service, region, at.Add(-time.Duration(a)), opts...)
}

// presign makes a presigner of URLs that are valid for a minute, signed some time ago.
func (s *store) presign(signed time.Duration) *awss3.PresignClient {
	return awss3.NewPresignClient(s.Client, func(o *awss3.PresignOptions) {
		o.Presigner, o.Expires = ago(signed), time.Minute
	})
}

// request makes a request of what a presigner gave.
func request(t *testing.T, p *v4.PresignedHTTPRequest, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), p.Method, p.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range p.SignedHeader {
		r.Header[name] = values
	}
	r.Header.Del("Host")
	r.Header.Del("Content-Length")
	return r
}

func sha(body string) string {
	sum := sha256.Sum256([]byte(body))
	return base64.StdEncoding.EncodeToString(sum[:])
}

const csv = "a,b\n1,2\n"

// upload presigns what a client may put: this key, length, type and content, once.
func (s *store) upload(key string, signed time.Duration) *v4.PresignedHTTPRequest {
	s.Helper()
	p, err := s.presign(signed).PresignPutObject(s.Context(), &awss3.PutObjectInput{
		Bucket: aws.String(bucket), Key: &key, ContentLength: aws.Int64(int64(len(csv))), ContentType: aws.String("text/csv"),
		ChecksumSHA256: aws.String(sha(csv)), IfNoneMatch: aws.String("*"),
	})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func TestPresignedPut(t *testing.T) {
	other := strings.ToUpper(csv)
	cases := []struct {
		name   string
		signed time.Duration // ago
		body   string
		change func(*http.Request)
		status int
		code   string
	}{
		{name: "as signed", body: csv, status: 200},
		{name: "a longer body", body: csv + "3,4\n", status: 403, code: "SignatureDoesNotMatch"},
		{name: "a shorter body", body: csv[:4], status: 403, code: "SignatureDoesNotMatch"},
		{name: "another type", body: csv, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.Header.Set("Content-Type", "text/html") }},
		{name: "another checksum", body: other, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.Header.Set("X-Amz-Checksum-Sha256", sha(other)) }},
		{name: "another content", body: other, status: 400, code: "BadDigest"},
		{name: "no checksum", body: csv, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.Header.Del("X-Amz-Checksum-Sha256") }},
		{name: "no condition", body: csv, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.Header.Del("If-None-Match") }},
		{name: "another key", body: csv, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.URL.Path += "x" }},
		{name: "another method", body: csv, status: 403, code: "SignatureDoesNotMatch",
			change: func(r *http.Request) { r.Method = http.MethodDelete }},
		{name: "expired", signed: 2 * time.Minute, body: csv, status: 403, code: "AccessDenied"},
	}
	eachWay(t, func(s *store) {
		for _, c := range cases {
			key := "imports/" + c.name + ".csv"
			r := request(s.T, s.upload(key, c.signed), c.body)
			if c.change != nil {
				c.change(r)
			}
			status, code, res, body := s.do(r)
			if status != c.status || code != c.code {
				s.Errorf("%s: status %d, code %q, want %d, %q\n%.300s", c.name, status, code, c.status, c.code, body)
			}
			if _, err := s.head(key); (err == nil) != (c.status == 200) {
				s.Errorf("%s: afterwards a look at the object gives %v", c.name, err)
			}
			if c.status == 200 && res.Header.Get("X-Amz-Version-Id") == "" {
				s.Errorf("%s: the answer names no version: %v", c.name, res.Header)
			}
		}
	})
}

func TestPresignedPutWorksOnce(t *testing.T) {
	eachWay(t, func(s *store) {
		const writers = 10
		statuses := make(chan int, writers)
		var all sync.WaitGroup
		p := s.upload("once.csv", 0)
		for range writers {
			r := request(s.T, p, csv)
			all.Go(func() {
				res, err := s.http.Do(r)
				if err != nil {
					s.Error(err)
					return
				}
				res.Body.Close()
				statuses <- res.StatusCode
			})
		}
		all.Wait()
		close(statuses)
		got := map[int]int{}
		for status := range statuses {
			got[status]++
		}
		if got[200] != 1 || got[200]+got[412]+got[409] != writers {
			s.Errorf("statuses %v, want 200 once and else 412 or 409", got)
		}
		if status, code, _, _ := s.do(request(s.T, p, csv)); status != 412 || code != "PreconditionFailed" {
			s.Errorf("once more: status %d, code %q", status, code)
		}
	})
}

func TestHeadTellsWhatWasUploaded(t *testing.T) {
	eachWay(t, func(s *store) {
		_, _, res, _ := s.do(request(s.T, s.upload("a.csv", 0), csv))
		h, err := s.head("a.csv")
		if err != nil {
			s.Fatal(err)
		}
		if aws.ToString(h.ChecksumSHA256) != sha(csv) || aws.ToString(h.ContentType) != "text/csv" || aws.ToInt64(h.ContentLength) != int64(len(csv)) ||
			aws.ToString(h.VersionId) != res.Header.Get("X-Amz-Version-Id") || h.ChecksumType != types.ChecksumTypeFullObject {
			s.Errorf("checksum %q (%s), type %q, length %d, version %q", aws.ToString(h.ChecksumSHA256), h.ChecksumType, aws.ToString(h.ContentType), aws.ToInt64(h.ContentLength), aws.ToString(h.VersionId))
		}
		_, err = s.head("none.csv")
		var missing *types.NotFound
		if !errors.As(err, &missing) {
			s.Errorf("a missing key gives %v", err)
		}
		_, err = s.GetObject(s.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("none.csv")})
		var noKey *types.NoSuchKey
		if !errors.As(err, &noKey) {
			s.Errorf("reading a missing key gives %v", err)
		}
	})
}

func TestVersions(t *testing.T) {
	eachWay(t, func(s *store) {
		first := s.put("k", "0123456789")
		second := s.put("k", "abcdefghij")
		if first == "" || first == second {
			s.Fatalf("versions %q and %q", first, second)
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("k")}); got != "abcdefghij" {
			s.Errorf("latest %q", got)
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("k"), VersionId: &first, Range: aws.String("bytes=2-4")}); got != "234" {
			s.Errorf("range of the first version %q", got)
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("k"), VersionId: &second, Range: aws.String("bytes=7-")}); got != "hij" {
			s.Errorf("end of the second version %q", got)
		}
		if _, err := s.DeleteObject(s.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("k")}); err != nil {
			s.Fatal(err)
		}
		if _, err := s.head("k"); err == nil {
			s.Error("the deleted object is still there")
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("k"), VersionId: &first}); got != "0123456789" {
			s.Errorf("the first version after the delete %q", got)
		}
	})
}

func TestMultipart(t *testing.T) {
	eachWay(t, func(s *store) {
		const minPart = 5 << 20
		create := func(key string) *string {
			out, err := s.CreateMultipartUpload(s.Context(), &awss3.CreateMultipartUploadInput{
				Bucket: aws.String(bucket), Key: &key, ContentType: aws.String("text/csv"), ChecksumAlgorithm: types.ChecksumAlgorithmSha256})
			if err != nil {
				s.Fatal(err)
			}
			return out.UploadId
		}
		id := create("big")
		var parts []types.CompletedPart
		for n, body := range []string{strings.Repeat("x", minPart), "the rest"} {
			number := aws.Int32(int32(n + 1))
			p, err := s.presign(0).PresignUploadPart(s.Context(), &awss3.UploadPartInput{Bucket: aws.String(bucket), Key: aws.String("big"), UploadId: id,
				PartNumber: number, ContentLength: aws.Int64(int64(len(body))), ChecksumSHA256: aws.String(sha(body))})
			if err != nil {
				s.Fatal(err)
			}
			if status, code, _, _ := s.do(request(s.T, p, strings.ToUpper(body))); status != 400 || code != "BadDigest" {
				s.Errorf("a part with another content: status %d, code %q", status, code)
			}
			status, _, res, text := s.do(request(s.T, p, body))
			if status != 200 {
				s.Fatalf("part %d: status %d, %s", *number, status, text)
			}
			parts = append(parts, types.CompletedPart{PartNumber: number, ETag: aws.String(res.Header.Get("ETag")), ChecksumSHA256: aws.String(sha(body))})
		}
		done, err := s.CompleteMultipartUpload(s.Context(), &awss3.CompleteMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("big"), UploadId: id,
			IfNoneMatch: aws.String("*"), MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
		if err != nil || aws.ToString(done.VersionId) == "" || !strings.HasSuffix(aws.ToString(done.ChecksumSHA256), "-2") {
			s.Fatalf("completed %+v, %v", done, err)
		}
		if h, err := s.head("big"); err != nil || aws.ToInt64(h.ContentLength) != minPart+8 || h.ChecksumType != types.ChecksumTypeComposite {
			s.Errorf("head %+v, %v", h, err)
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("big"), VersionId: done.VersionId, Range: aws.String("bytes=5242879-")}); got != "xthe rest" {
			s.Errorf("the end is %q", got)
		}

		aborted := create("aborted")
		if _, err := s.AbortMultipartUpload(s.Context(), &awss3.AbortMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("aborted"), UploadId: aborted}); err != nil {
			s.Error(err)
		}
		list, err := s.ListMultipartUploads(s.Context(), &awss3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
		if err != nil || len(list.Uploads) != 0 {
			s.Errorf("uploads left %v, %v", list, err)
		}
		_, err = s.UploadPart(s.Context(), &awss3.UploadPartInput{Bucket: aws.String(bucket), Key: aws.String("aborted"), UploadId: aborted, PartNumber: aws.Int32(1), Body: strings.NewReader("x")})
		if code := codeOf(err); code != "NoSuchUpload" {
			s.Errorf("a part of an aborted upload gives %v", err)
		}
	})
}

func codeOf(err error) string {
	var api interface{ ErrorCode() string }
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func TestPresignedGet(t *testing.T) {
	eachWay(t, func(s *store) {
		version := s.put("r", "0123456789")
		s.put("r", "newer")
		in := &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("r"), VersionId: &version,
			ResponseContentDisposition: aws.String(`attachment; filename="r.csv"`), ResponseContentType: aws.String("text/csv")}
		p, err := s.presign(0).PresignGetObject(s.Context(), in)
		if err != nil {
			s.Fatal(err)
		}
		status, _, res, body := s.do(request(s.T, p, ""))
		if status != 200 || body != "0123456789" || res.Header.Get("Content-Disposition") != *in.ResponseContentDisposition || res.Header.Get("Content-Type") != "text/csv" {
			s.Errorf("status %d, %q, %v", status, body, res.Header)
		}
		part := request(s.T, p, "")
		part.Header.Set("Range", "bytes=8-")
		if status, _, res, body := s.do(part); status != 206 || body != "89" || res.Header.Get("Content-Range") != "bytes 8-9/10" {
			s.Errorf("a range: status %d, %q, %v", status, body, res.Header)
		}
		old, err := s.presign(2*time.Minute).PresignGetObject(s.Context(), in)
		if err != nil {
			s.Fatal(err)
		}
		if status, code, _, body := s.do(request(s.T, old, "")); status != 403 || code != "AccessDenied" || !strings.Contains(body, "expired") {
			s.Errorf("expired: status %d, code %q, %s", status, code, body)
		}
		other := request(s.T, p, "")
		other.URL.RawQuery = strings.Replace(other.URL.RawQuery, "r.csv", "r.exe", 1)
		if status, code, _, _ := s.do(other); status != 403 || code != "SignatureDoesNotMatch" {
			s.Errorf("another file name: status %d, code %q", status, code)
		}
	})
}

func TestCORS(t *testing.T) {
	eachWay(t, func(s *store) {
		_, err := s.PutBucketCors(s.Context(), &awss3.PutBucketCorsInput{Bucket: aws.String(bucket), CORSConfiguration: &types.CORSConfiguration{
			CORSRules: []types.CORSRule{{AllowedOrigins: []string{"https://app.example"}, AllowedMethods: []string{"PUT", "GET"},
				AllowedHeaders: []string{"*"}, ExposeHeaders: []string{"ETag", "x-amz-version-id"}, MaxAgeSeconds: aws.Int32(600)}}}})
		if err != nil {
			s.Fatal(err)
		}
		p := s.upload("cors.csv", 0)
		preflight := func(origin, method string) (int, http.Header) {
			r := request(s.T, &v4.PresignedHTTPRequest{Method: http.MethodOptions, URL: p.URL}, "")
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", method)
			r.Header.Set("Access-Control-Request-Headers", "content-type,if-none-match,x-amz-checksum-sha256")
			status, _, res, _ := s.do(r)
			return status, res.Header
		}
		status, h := preflight("https://app.example", "PUT")
		if status != 200 || h.Get("Access-Control-Allow-Origin") != "https://app.example" || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "x-amz-checksum-sha256") {
			s.Errorf("preflight: %d, %v", status, h)
		}
		if status, h := preflight("https://evil.example", "PUT"); status != 403 || h.Get("Access-Control-Allow-Origin") != "" {
			s.Errorf("preflight of another origin: %d, %v", status, h)
		}
		if status, _ := preflight("https://app.example", "DELETE"); status != 403 {
			s.Errorf("preflight of another method: %d", status)
		}
		r := request(s.T, p, csv)
		r.Header.Set("Origin", "https://app.example")
		if status, _, res, _ := s.do(r); status != 200 || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
			!strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "x-amz-version-id") {
			s.Errorf("the upload itself: %d, %v", status, res.Header)
		}
	})
}

// TestStreams sends bodies that cannot be read twice, as a processor writes its results.
func TestStreams(t *testing.T) {
	eachWay(t, func(s *store) {
		data := make([]byte, 11<<20)
		rand.Read(data)
		up := transfermanager.New(s.Client)
		_, err := up.UploadObject(s.Context(), &transfermanager.UploadObjectInput{Bucket: aws.String(bucket), Key: aws.String("stream"),
			Body: io.MultiReader(bytes.NewReader(data))})
		if err != nil {
			s.Fatal(err)
		}
		if got := s.get(awss3.GetObjectInput{Key: aws.String("stream")}); got != string(data) {
			s.Errorf("%d bytes came back otherwise than sent", len(got))
		}
		_, err = s.PutObject(s.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("plain"),
			ContentLength: aws.Int64(100), Body: io.MultiReader(bytes.NewReader(data[:100]))})
		overTLS := strings.HasSuffix(s.Name(), "tls_proxy")
		if (err == nil) != overTLS {
			s.Errorf("PutObject of a stream: %v; the SDK does it over TLS alone", err)
		}
		if overTLS && (s.chunked.Load() < 2 || s.get(awss3.GetObjectInput{Key: aws.String("plain")}) != string(data[:100])) {
			s.Errorf("%d requests in aws-chunked encoding", s.chunked.Load())
		}
	})
}

func TestWrongCredentials(t *testing.T) {
	eachWay(t, func(s *store) {
		for _, c := range []struct{ ak, sk, code string }{{"test", "wrong", "SignatureDoesNotMatch"}, {"nobody", "testtest", "InvalidAccessKeyId"}} {
			// A client of its own: the SDK keeps derived keys by access key, whatever the secret.
			other := newClient(*s.Options().BaseEndpoint, s.http, c.ak, c.sk)
			_, err := other.ListObjectsV2(s.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(bucket)})
			if code := codeOf(err); code != c.code {
				s.Errorf("%s/%s: %v, want %s", c.ak, c.sk, err, c.code)
			}
		}
	})
}

func TestDirectoryIsKeptAndRestored(t *testing.T) {
	dir := t.TempDir()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		server, err := Start(t.Context(), Config{Dir: dir, AccessKey: "test", SecretKey: "testtest"})
		if err != nil {
			t.Fatal(err)
		}
		s := &store{T: t, Client: newClient(server.URL(), http.DefaultClient, "test", "testtest")}
		if n == 0 {
			s.createBucket()
			s.put("k", "kept")
		} else if got := s.get(awss3.GetObjectInput{Key: aws.String("k")}); got != "kept" {
			t.Errorf("after a restart %q", got)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	if now, _ := os.Getwd(); now != before {
		t.Errorf("the working directory is %s, was %s", now, before)
	}
	if _, err := os.Stat(filepath.Join(dir, "objects", bucket)); err != nil {
		t.Error(err)
	}
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	server, err := Start(t.Context(), Config{AccessKey: "a", SecretKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server.scratch); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(server.scratch); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := http.Get(server.URL()); err == nil {
		t.Error("the store still answers")
	}
}

func TestOneStorePerProcess(t *testing.T) {
	start(t, Config{})
	if s, err := Start(t.Context(), Config{AccessKey: "a", SecretKey: "b"}); err == nil {
		s.Close()
		t.Error("a second store started")
	}
}
