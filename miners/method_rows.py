"""Rows of the table `methods`: everything a classified method says about itself and its commit."""

from dataclasses import dataclass
from urllib.parse import quote_from_bytes

from miners.changes import display_path
from miners.licences import Licence
from miners.marks import is_test
from miners.methods import MethodSpan, dedent
from miners.novelty import Classified
from miners.sources import SourceFile
from schemas.records import CommitRecord, Method, RepositoryRecord, make_row_id


@dataclass(frozen=True, slots=True)
class MethodRows:
    """Makes the rows of one file at one commit."""

    commit: CommitRecord
    record: RepositoryRecord
    source: SourceFile
    raw_path: bytes
    is_sound: bool

    @property
    def path(self) -> str:
        """Return the path as text."""
        return display_path(self.raw_path)

    def row_id(self, span: MethodSpan) -> str:
        """Return a method's row id."""
        start = self.source.raw_offset(span.start_byte)
        return make_row_id(self.record.key, self.commit.commit_id, self.path, span.fun_name, start)

    def method(self, item: Classified, licence: Licence) -> Method:
        """Return a method's row; raise DataError `dedent_failed`."""
        span, commit, earlier = item.span, self.commit, item.earlier
        return Method(
            row_id=self.row_id(span),
            repo=commit.repo,
            repo_id=self.record.repo_id,
            url=self._url(span),
            license=licence.expression,
            license_matches=licence.matches,
            copyrights=licence.copyrights,
            commit_id=commit.commit_id,
            parent_id=commit.parent_ids[0] if commit.parent_ids else None,
            author_date=commit.author_date,
            committer_date=commit.committer_date,
            path=self.path,
            file_name=self.path.rpartition("/")[2],
            fun_name=span.fun_name,
            language="python",
            blob_id=self.source.blob_id,
            start_byte=self.source.raw_offset(span.start_byte),
            end_byte=self.source.raw_offset(span.end_byte),
            start_line=span.start_line,
            end_line=span.end_line,
            novelty=item.novelty,
            earlier_path=None if earlier is None else earlier.path,
            earlier_fun_name=None if earlier is None else earlier.fun_name,
            earlier_commit_id=None if earlier is None else earlier.commit_id,
            similarity=None if earlier is None else earlier.similarity,
            token_key=span.keys.nameless.hex(),
            is_test=is_test(self.path, span.fun_name),
            commit_message=commit.commit_message,
            author_is_bot=commit.author_is_bot,
            code=dedent(self.source.utf8, span, is_sound=self.is_sound),
        )

    def _url(self, span: MethodSpan) -> str | None:
        """Return the permalink to a method's lines, null without a web address."""
        if self.record.web_url is None:
            return None
        file = f"{self.record.web_url}/blob/{self.commit.commit_id}/{quote_from_bytes(self.raw_path)}"
        return f"{file}#L{span.start_line}-L{span.end_line}"
