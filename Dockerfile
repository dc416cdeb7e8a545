# docker build -t crawl4llm . && docker run --rm -v "$PWD/mycrawl:/crawl" crawl4llm crawl influence
# The first stage builds the wheel and installs it with all extras; the second has what came of it, and no build tools.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist . \
 && python -m venv /opt/crawl4llm \
 && /opt/crawl4llm/bin/pip install --no-cache-dir "$(echo /dist/*.whl)[all]"

FROM python:3.13-slim
COPY --from=build /opt/crawl4llm /opt/crawl4llm
ENV PATH=/opt/crawl4llm/bin:$PATH PYTHONUNBUFFERED=1
# /crawl is the project: mount a folder that `crawl4llm init` has made, or use the one that is there.
RUN useradd --uid 1000 --create-home crawler && crawl4llm init /crawl && chown -R crawler /crawl
USER crawler
WORKDIR /crawl
VOLUME /crawl
ENTRYPOINT ["scrapy"]
CMD ["crawl", "influence"]
